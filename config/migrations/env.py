"""What Alembic runs to migrate: on the connection, and in the transaction, that `config.migrate` hands in."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
