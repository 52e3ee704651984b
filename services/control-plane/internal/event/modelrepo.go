package event

// Push is the data of event.push: a new head of the watched branch.
type Push struct {
	EventID   int64  `json:"event_id"`
	CommitSHA string `json:"commit_sha"`
	Branch    string `json:"branch"`
	Source    string `json:"source"` // webhook or poll
}

// ConfigChanged is the data of event.config_changed; keys are those whose value changed.
type ConfigChanged struct {
	Scope string   `json:"scope"`
	Keys  []string `json:"keys"`
}
