"""One mail over SMTP: a connection, one transaction, and what the server said (RFC 5321)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
)

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.email.servers import Server, failure, reason, trust, unreachable
from halo_runtime.tools.web.client import clean

_CLIENT_NAME: Final = "[127.0.0.1]"
"""What is said at the greeting, as other mail clients do: the machine's own name is nobody's business."""
_GOODBYE_SECONDS: Final = 1.0


@record
class Refusal:
    """A recipient whom the server did not take."""

    address: str
    code: int
    message: str


async def send(
    server: Server, sender: str, recipients: tuple[str, ...], message: bytes, seconds: float
) -> list[Refusal]:
    """Hand over a mail; who was refused, where somebody was taken. Cancelled, the connection is closed.

    Raises ToolError: `retryable` only where the mail has certainly not been taken and the server says that it passes.
    """
    async with _connected(server, seconds) as client:
        size = [f"size={len(message)}"] if client.supports_extension("size") else []
        try:
            async with asyncio.timeout(seconds):
                await client.mail(sender, options=size)
                refused = [refusal for address in recipients if (refusal := await _offer(client, address))]
        except SMTPResponseException as error:
            raise _refused(server, error, "did not take the mail") from None
        except (SMTPException, OSError) as error:
            raise failure(server, f"broke the connection: {reason(error)}", retryable=True) from None
        if len(refused) == len(recipients):
            raise _nobody(server, refused)
        try:
            async with asyncio.timeout(seconds):
                await client.data(message)
        except SMTPResponseException as error:
            raise _refused(server, error, "did not take the mail") from None
        except (SMTPException, OSError):
            raise failure(server, _DOUBT) from None
        return refused


_DOUBT: Final = (
    "broke the connection without saying whether it took the mail; it may have been sent: look before sending it again"
)


async def greet(server: Server, seconds: float) -> None:
    """Connect and log in, no more. Raises ToolError."""
    async with _connected(server, seconds):
        pass


@asynccontextmanager
async def _connected(server: Server, seconds: float) -> AsyncGenerator[SMTP]:
    """A connection, logged in where there is a user. It is closed whatever happens."""
    client = SMTP(
        hostname=server.host,
        port=server.port,
        local_hostname=_CLIENT_NAME,
        timeout=None,  # with a time of its own the library may miss that it is cancelled (`asyncio.wait_for`)
        use_tls=server.security == "tls",
        start_tls={"tls": False, "starttls": True, "local": None}[server.security],
        tls_context=trust(),
    )
    try:
        await _log_in(client, server, seconds)
        yield client
        with suppress(SMTPException, OSError):  # the mail is taken, whatever happens to the goodbye
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await client.quit()
    finally:
        client.close()


async def _log_in(client: SMTP, server: Server, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await client.connect()
    except SMTPResponseException as error:
        raise _refused(server, error, "does not talk to us") from None
    except OSError as error:  # the library's own ones too, for connections
        raise unreachable(server, error) from None
    except SMTPException as error:
        if server.security == "starttls":
            problem = "offers no STARTTLS, so mail and password could be read on their way; try smtps://"
            raise failure(server, problem) from None
        raise failure(server, f"cannot be talked to: {clean(str(error))}") from None
    try:
        async with asyncio.timeout(seconds):
            if server.user is None:
                await client.ehlo()
            else:
                await client.login(server.user, server.password)
    except SMTPAuthenticationError as error:
        raise _refused(server, error, "does not take the user and password; check user: and password:") from None
    except SMTPResponseException as error:
        raise _refused(server, error, "does not talk to us") from None
    except OSError as error:
        raise unreachable(server, error) from None
    except SMTPException as error:
        raise failure(server, f"takes no password here: {clean(str(error))}") from None


async def _offer(client: SMTP, address: str) -> Refusal | None:
    """Name a recipient; the refusal where there is one."""
    try:
        await client.rcpt(address)
    except SMTPRecipientRefused as error:
        return Refusal(address, error.code, clean(error.message))
    return None


def _nobody(server: Server, refused: list[Refusal]) -> ToolError:
    told = "; ".join(f"{one.address}: {one.code} {one.message}" for one in refused[:5])
    more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
    passing = all(400 <= one.code < 500 for one in refused)
    advice = "; it may take the mail later" if passing else ""
    return failure(
        server, f"took none of the recipients ({told}{more}){advice}", retryable=passing, status=refused[0].code
    )


def _refused(server: Server, error: SMTPResponseException, what: str) -> ToolError:
    """The ToolError for a reply; codes of 400 to 499 say that the same may be taken later (RFC 5321, 4.2.1)."""
    passing = 400 <= error.code < 500
    advice = "; it is larger than the server takes" if error.code == 552 else ""
    return failure(server, f"{what}: {error.code} {clean(error.message)}{advice}", retryable=passing, status=error.code)
