package cli

import "testing"

func TestParseSacct(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, out string
		gpu, cpu  float64
		fails     bool
	}{
		{"gpus", "COMPLETED|3600|28800|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=32G,node=1\n", 4, 8, false},
		{"no gpu", "TIMEOUT|1800|7200|cpu=4,mem=8G", 0, 2, false},
		{"cancelled by somebody", "CANCELLED by 1000|900|3600|cpu=4,gres/gpu=2", .5, 1, false},
		{"still runs", "RUNNING|10|40|cpu=4", 0, 0, true},
		{"unknown job", "", 0, 0, true},
		{"not a number", "COMPLETED|soon|0|cpu=1", 0, 0, true},
		{"no finite number", "COMPLETED|NaN|0|cpu=1", 0, 0, true},
		{"an endless job", "COMPLETED|10|Inf|cpu=1", 0, 0, true},
		{"negative devices", "COMPLETED|10|10|gres/gpu=-1", 0, 0, true},
	} {
		gpu, cpu, err := parseSacct(tc.out)
		if gpu != tc.gpu || cpu != tc.cpu || (err != nil) != tc.fails {
			t.Errorf("%s: got %v and %v hours (%v), want %v and %v, failing %v", tc.name, gpu, cpu, err, tc.gpu, tc.cpu, tc.fails)
		}
	}
}
