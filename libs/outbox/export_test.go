package outbox

// For tests of what the database does with them.
const StatsSQL = statsSQL

var LostTail = (*Relay).lostTail
