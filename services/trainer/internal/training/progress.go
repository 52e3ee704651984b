package training

// Overall is how far a training is as a whole: evaluation, which fits the model, takes most of the time.
func Overall(stage string, fraction float64) float64 {
	weight := func(s string) float64 {
		if s == "evaluate" {
			return 10
		}
		return 1
	}
	var before, total float64
	found := false
	for _, s := range Stages {
		if s == stage {
			before += weight(s) * fraction
			found = true
		} else if !found {
			before += weight(s)
		}
		total += weight(s)
	}
	if !found {
		return 0
	}
	return before / total
}
