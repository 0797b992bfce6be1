"""Providers that talk to people: Slack and Email (spec 5, reference 2.5 and 2.6)."""

from __future__ import annotations

from halo_lang.catalog.signature import Method, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec

_WHERE = optional("channel", "string", "The channel's name or id, or a person's id; else that of the declaration.")
_CHANNEL = required("channel", "string", "The channel's name or id.")
_TS = required("ts", "string", "The message's timestamp, a text.")
_TEXT = required("text", "string", "The text.")
_MARKUP = optional("markup", "boolean", "The text is Slack's markup, whose mentions and links work.", named_only=True)
_THREAD = optional("thread", "string", "The timestamp of the message whose thread it goes to.")
_BLOCKS = optional("blocks", "list", "Blocks, at most 50.", items="object")
_CURSOR = optional("cursor", "string", "Where the page before ended.")
_LIMIT = optional("limit", "integer", "How many at most.", default=20, minimum=1, maximum=999)

SLACK = ProviderSpec(
    "Slack",
    Signature(
        (
            optional("token", "string", "A bot's token.", secret=True, variables=("SLACK_BOT_TOKEN",)),
            optional("channel", "string", "The channel of messages that name none.", named_only=True),
            optional("baseUrl", "string", "The API's address.", named_only=True, variables=("SLACK_API_URL",)),
        )
    ),
    (
        Method("post", Signature((_WHERE, optional("text", "string", "The text; what is told of the blocks, if any."),
                                  _THREAD, _BLOCKS, _MARKUP), any_of=("text", "blocks")),
               "{channel, ts}", "write", False, "Post a message.", 'Team.post("#general", "done")'),
        Method("update", Signature((_CHANNEL, _TS, _TEXT, _BLOCKS, _MARKUP)), "{channel, ts}", "write", True,
               "Change a message of its own.", 'Team.update("#general", ts, "done")'),
        Method("delete", Signature((_CHANNEL, _TS)), "true, false where there is none", "destructive", True,
               "Remove a message of its own.", 'Team.delete("#general", ts)'),
        Method("ephemeral", Signature((_CHANNEL, required("user", "string", "Who sees it, by id."), _TEXT, _THREAD,
                                       _MARKUP)), "{ts}", "write", False, "Post a message that one person sees.",
               'Team.ephemeral("#general", "U1", "hi")'),
        Method("history", Signature((_CHANNEL, _LIMIT, _CURSOR)), "{messages, cursor}, newest first",
               doc="Read a channel.", example='Team.history("#general")'),
        Method("replies", Signature((_CHANNEL, _TS, _LIMIT, _CURSOR)), "{messages, cursor}, oldest first",
               doc="Read a thread.", example='Team.replies("#general", ts)'),
        Method("channels", Signature((_LIMIT, _CURSOR)), "{channels, cursor}", doc="List the channels.",
               example="Team.channels()"),
        Method("openDm", Signature((required("user", "string", "The person's id, or several with commas."),)),
               "{channel}", "write", True, "Open a direct conversation.", 'Team.openDm("U1")'),
        Method("react", Signature((_CHANNEL, _TS, required("name", "string", "The emoji, with or without colons."))),
               "true", "write", True, "React to a message.", 'Team.react("#general", ts, "eyes")'),
        Method("user", Signature((optional("id", "string", "The person's id."),
                                  optional("email", "string", "The person's address.")), any_of=("id", "email")),
               "{id, name, realName, email, isBot, deleted}", doc="Find a person.",
               example='Team.user(email: "ada@example.org")'),
        Method("upload", Signature((_CHANNEL, required("path", "string", "The file."),
                                    optional("title", "string", "Its title."), _THREAD)),
               "{id}", "write", False, "Upload a file.", 'Team.upload("#general", "report.pdf")'),
    ),
    "Slack, with a bot's token.",
    "tool Team : Slack(Env.SLACK_BOT_TOKEN)",
    notifies=True,
)  # fmt: skip

_UID = required("uid", "string", "The mail's number in its folder, as list and search give it.")
_FOLDER = optional("folder", "string", "The folder.", default="INBOX")
_HTML = optional("html", "string", "The text as HTML, beside the plain one.")
_FILES = optional("attachments", "list", "Paths of files to take along.", items="string")
_HEADLINE = "[{uid, from, to, subject, date, seen, size}], newest first"

EMAIL = ProviderSpec(
    "Email",
    Signature(
        (
            optional("smtp", "string", "The server that sends, host[:port] or smtps://host.", variables=("SMTP_HOST",)),
            optional("imap", "string", "The server that holds the mail, host[:port].", variables=("IMAP_HOST",)),
            optional("user", "string", "The account.", variables=("SMTP_USER", "IMAP_USER")),
            optional("password", "string", "Its password.", secret=True,
                     variables=("SMTP_PASSWORD", "IMAP_PASSWORD")),
            optional("from", "string", "The sender's address; the user's when left out.", variables=("SMTP_FROM",)),
            optional("allowRecipients", "list", 'Who may get mail: addresses, "@domain", "*".', items="string"),
            optional("notify", "list", "Who is told of questions whose channel this is.", items="string",
                     named_only=True),
            optional("smtpPort", "integer", "The port of a host without one.", minimum=1, maximum=65535,
                     named_only=True, variables=("SMTP_PORT",)),
            optional("imapPort", "integer", "The port of a host without one.", minimum=1, maximum=65535,
                     named_only=True, variables=("IMAP_PORT",)),
            optional("imapUser", "string", "The account for reading, where it is another one.", named_only=True),
            optional("imapPassword", "string", "Its password.", named_only=True, secret=True),
            optional("files", "string", "The folder of attachments; the program's when left out.", named_only=True),
            optional("timeout", "duration", "For each step of sending, and for a whole call that reads.",
                     default="60s", positive=True, named_only=True),
        )
    ),
    (
        Method("send", Signature((required("to", "any", "An address or a list of them."),
                                  required("subject", "string", "The subject."), _TEXT,
                                  optional("cc", "any", "Who gets a copy."),
                                  optional("bcc", "any", "Who gets a copy that nobody else sees."), _HTML, _FILES,
                                  optional("replyTo", "any", "Where answers go."))),
               "{id, refused}", "write", False, "Send a mail.", 'Post.send("ada@example.org", "Hello", "Hi!")'),
        Method("reply", Signature((_UID, _TEXT, _HTML, _FILES, _FOLDER)), "{id, refused}", "write", False,
               "Answer a mail.", 'Post.reply(uid, "Thanks.")'),
        Method("list", Signature((_FOLDER, optional("unseen", "boolean", "Only new ones."), _LIMIT)), _HEADLINE,
               doc="List mails.", example="Post.list(unseen: true)"),
        Method("read", Signature((_UID, _FOLDER)),
               "{uid, seen, size, from, to, cc, replyTo, subject, date, text, attachments}",
               doc="Read a mail; it stays unread.", example="Post.read(uid)"),
        Method("search", Signature((optional("from", "string", "A part of the sender."),
                                    optional("subject", "string", "A part of the subject."),
                                    optional("text", "string", "What stands somewhere in it."),
                                    optional("since", "string", "A date, YYYY-MM-DD."), _FOLDER, _LIMIT)),
               _HEADLINE, doc="Find mails.", example='Post.search(subject: "invoice")'),
        Method("markRead", Signature((_UID, _FOLDER)), "true", "write", True, "Mark a mail as read.",
               "Post.markRead(uid)"),
        Method("move", Signature((_UID, required("to", "string", "The folder to move to."), _FOLDER)), "true", "write",
               False, "Move a mail.", 'Post.move(uid, "Archive")'),
        Method("delete", Signature((_UID, _FOLDER)), "true, false where there is none", "destructive", True,
               "Remove a mail.", "Post.delete(uid)"),
        Method("attachment", Signature((_UID, required("name", "string", "The attachment's name, as read gives it."),
                                        _FOLDER)),
               "{path, size}", "write", True, "Keep an attachment as a file.",
               'Post.attachment(uid, "invoice.pdf")'),
    ),
    "Mail by SMTP and IMAP.",
    'tool Post : Email(smtp: "smtp.example.org", user: Env.MAIL_USER, password: Env.MAIL_PASSWORD)',
    extra="email",
    notifies=True,
)  # fmt: skip

PROVIDERS: tuple[ProviderSpec, ...] = (SLACK, EMAIL)
