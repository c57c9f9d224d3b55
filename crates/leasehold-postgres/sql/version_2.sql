-- Version 2 of the schema.

-- A waiter finds its place by its owner.
create unique index waiter_owner on leasehold.waiter (name, owner);
