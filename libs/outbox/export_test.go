package outbox

// For a test of what happens between the broker's answer and the database.
var LostTail = (*Relay).lostTail
