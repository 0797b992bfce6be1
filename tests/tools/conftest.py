"""Real servers that tests of several tools share; each is started when the first test of a worker wants it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.services.mail import Dovecot
    from tests.services.postgres import Database, Postgres


@pytest.fixture(scope="session")
def mailboxes() -> Iterator[Dovecot]:
    """Dovecot; every user name has a mailbox of its own."""
    from tests.services.mail import dovecot

    with dovecot() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    from tests.services.postgres import postgres

    with postgres() as server:
        yield server


@pytest.fixture
def database(postgres_server: Postgres) -> Iterator[Database]:
    """A database with nothing in it."""
    with postgres_server.database() as database:
        yield database
