package event

// DriftRetrain is the data of drift.retrain_requested and retrain_blocked.
type DriftRetrain struct {
	Model   string   `json:"model"`
	ZScore  *float64 `json:"z_score,omitempty"` // absent where it is not a number
	Outcome string   `json:"outcome"`
	Reason  *string  `json:"reason,omitempty"`
}
