"""Mail as a provider: sending by SMTP, reading by IMAP."""
