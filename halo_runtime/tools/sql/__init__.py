"""Databases by SQL: `PostgreSQL(url)`, and `SQL(url)`, which takes an SQLite file too (spec 5, reference 2.7)."""
