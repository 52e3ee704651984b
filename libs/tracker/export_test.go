package tracker

import "time"

// Backoff sets the wait before the second attempt of a read, doubled before the third.
func Backoff(d time.Duration) Option { return func(c *Client) { c.backoff = d } }
