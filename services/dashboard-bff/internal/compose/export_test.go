package compose

// Entries returns the number of answers kept.
func Entries(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}
