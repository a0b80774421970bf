"""operations: the calls of the store, written once for SQLite and PostgreSQL.

An operation is a generator that yields statements and is sent their rows. It knows no database, no
connection and no thread. A `Runner` of sqlite/ or postgres/ runs it inside of a transaction.
"""
