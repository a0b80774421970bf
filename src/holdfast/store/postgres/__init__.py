"""The store for many machines: PostgreSQL through asyncpg, which only this folder imports."""
