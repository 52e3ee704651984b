package event

// JobState is the data of job.state_changed: a batch job of the facility. The
// state before the first report is UNKNOWN.
type JobState struct {
	JobID     string `json:"job_id"`
	Scheduler string `json:"scheduler"`
	Model     string `json:"model"`
	State     string `json:"state"`
	Previous  string `json:"previous"`
}
