-- The words and times that scripts have in common; it stands in front of everything else.
--
-- Source  Leasehold's wire v1

-- What the lock key holds while the lock is kept for the next in the queue begins with this.
local RESERVED = 'leasehold:next:'

-- What it holds while this is no plain exclusive lease begins with this.
local OURS = 'leasehold:'

-- Under these names "offered" says until when a free lock is left free; until when readers that wait need
-- not be called again; and until when nobody else is asked to show itself (queue.lua).
local GAP = 'gap'
local CALLED = 'called'
local SHOWS = 'shows'

-- The counter of fences: this entry of a ZSET, since ZADD GT is "raise to at least" in one command. What
-- else stands there is noted of owners (lease.lua).
local COUNTER = 'f'

-- How long a counter outlives the last use of its lock: 7 days. No immortal key per lock.
local REST_MS = 7 * 24 * 60 * 60 * 1000

-- Behind a waiter's name this says that it wants to share the lock.
local SHARED_MARK = '/s'

-- A waiter is the id of its client, a dot, and a nonce. Its client hears what is said into its inbox.
local CLIENT_LENGTH = 16
local WAITER_LENGTH = 49
local INBOX = 'leasehold:inbox:'

-- How long a lock is kept for a waiter, and what is known of a queue that nobody asks about.
local RESERVATION_MS = 1000
local RECORD_MS = 30 * 1000

-- So many entries are looked at at once.
local FEW = 4

-- The client for which a release keeps the lock, where somebody has yet to be told to stand in for it:
-- set by hand_over_alone.lua.
local handed_to = nil

