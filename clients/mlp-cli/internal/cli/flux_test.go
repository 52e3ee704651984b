package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fluxR1 = `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-7","gpu":"0,2"}},{"rank":"5","children":{"core":"3"}}],"starttime":1,"expiration":2}}`

func TestFluxJobs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		out      string
		gpu, cpu float64
		fails    bool
	}{
		"alone":              {`{"id":1,"state":"INACTIVE","result":"COMPLETED","runtime":3600,"ncores":8,"ngpus":4}`, 4, 8, false},
		"under jobs":         {`{"jobs":[{"state":"INACTIVE","runtime":1800.0,"ncores":8,"ngpus":0}]}`, 0, 4, false},
		"in a list":          {`[{"state":"INACTIVE","runtime":1800.0,"ncores":8,"ngpus":2}]`, 1, 4, false},
		"R counts":           {`{"state":"INACTIVE","runtime":3600,"R":` + fluxR1 + `}`, 4, 17, false},
		"times":              {`{"state":"INACTIVE","t_run":1000.5,"t_cleanup":2800.5,"ncores":2,"ngpus":2}`, 1, 1, false},
		"runs":               {`{"state":"RUN","runtime":10,"ncores":2,"ngpus":2}`, 0, 0, true},
		"unknown":            {`{"jobs":[]}`, 0, 0, true},
		"two":                {`[{"state":"INACTIVE"},{"state":"INACTIVE"}]`, 0, 0, true},
		"no time":            {`{"state":"INACTIVE","ncores":2,"ngpus":2}`, 0, 0, true},
		"negative":           {`{"state":"INACTIVE","runtime":-1,"ncores":2,"ngpus":2}`, 0, 0, true},
		"too many":           {`{"state":"INACTIVE","runtime":1e300,"ncores":2,"ngpus":2}`, 0, 0, true},
		"an idset backwards": {`{"state":"INACTIVE","runtime":1,"R":{"execution":{"R_lite":[{"rank":"1-0","children":{"core":"0"}}]}}}`, 0, 0, true},
		"nothing allotted":   {`{"state":"INACTIVE","runtime":1,"R":{}}`, 0, 0, true},
		"another document":   {`"x"`, 0, 0, true},
		"no document":        {`json`, 0, 0, true},
	} {
		j, err := parseFluxJob([]byte(tc.out))
		gpu, cpu := 0.0, 0.0
		if err == nil {
			gpu, cpu, err = j.hours()
		}
		if gpu != tc.gpu || cpu != tc.cpu || (err != nil) != tc.fails {
			t.Errorf("%s: got %v and %v hours (%v), want %v and %v, failing %v", name, gpu, cpu, err, tc.gpu, tc.cpu, tc.fails)
		}
	}
}

// fakeFlux puts a command of that name, which prints what cases say, first into PATH.
func fakeFlux(t *testing.T, cases string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "flux"), []byte("#!/bin/sh\ncase \"$*\" in\n"+cases+"\n*) echo \"flux: $*\" >&2; exit 1;;\nesac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// costsServer serves a platform with one version whose job ran under Flux; it keeps the last cost that is recorded.
func costsServer(t *testing.T, sent *map[string]any) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"/api/2.0/mlflow/registered-models/get":  `{"registered_model":{"name":"jpcp"}}`,
		"/api/2.0/mlflow/model-versions/search":  `{"model_versions":[{"name":"jpcp","version":"1","run_id":"r"}]}`,
		"/api/2.0/mlflow/runs/get":               `{"run":{"info":{"run_id":"r"},"data":{"tags":[{"key":"hpc_job_id","value":"f2oLkTLb"},{"key":"hpc_scheduler","value":"flux"}]}}}`,
		"/api/2.0/mlflow/model-versions/set-tag": `{}`,
		"POST /audit/events":                     `{"event_id":"01990000-0000-7000-8000-000000000000"}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
	}
	mux.HandleFunc("POST /costs", func(w http.ResponseWriter, r *http.Request) {
		*sent = nil
		_ = json.NewDecoder(r.Body).Decode(sent)
		fmt.Fprint(w, `{"recorded":true,"gpu_hours":6,"cpu_hours":48,"cost_usd":54,"kwh":1,"co2e_g":1,"synthetic":false}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// The hours of a Flux job come from flux, and the prices first from the environment of mlp.
func TestCostsOfFluxJobs(t *testing.T) {
	var sent map[string]any
	url := costsServer(t, &sent)
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_URL": url, "TRACKING_URI": url}
	record := func() result { return runMLP(t, vars, "", "--json", "models", "cost", "JPCP", "--record") }
	for name, cases := range map[string]string{
		"of the job":         `"jobs -o json f2oLkTLb") echo '{"state":"INACTIVE","runtime":3600,"ncores":17,"ngpus":4}';;`,
		"with R apart":       `"jobs -o json f2oLkTLb") echo '{"state":"INACTIVE","runtime":3600}';;` + "\n" + `"job info f2oLkTLb R") echo '` + fluxR1 + `';;`,
		"by option for JSON": `"jobs -o json f2oLkTLb") echo json;;` + "\n" + `"jobs --json f2oLkTLb") echo '{"state":"INACTIVE","runtime":3600,"R":` + fluxR1 + `}';;`,
	} {
		fakeFlux(t, cases)
		if r := record(); r.code != 0 || sent["gpu_hours"] != 4.0 || sent["cpu_hours"] != 17.0 || sent["scheduler"] != "flux" || sent["gpu_cost_per_hour"] != nil {
			t.Errorf("%s: got %+v, sent %v; want 4 GPU hours and 17 core hours", name, r, sent)
		}
	}
	vars["GPU_COST_PER_HOUR"], vars["CPU_COST_PER_HOUR"] = "9", "0"
	if r := record(); r.code != 0 || sent["gpu_cost_per_hour"] != 9.0 || sent["cpu_cost_per_hour"] != 0.0 {
		t.Errorf("got %+v, sent %v; want the prices of the environment", r, sent)
	}
	for _, wrong := range []string{"nine", "-1", "NaN", "1e9"} {
		vars["GPU_COST_PER_HOUR"] = wrong
		if r := record(); r.code != 1 || !strings.Contains(r.out, "GPU_COST_PER_HOUR is ") {
			t.Errorf("%s: got %+v, want exit 1 and the variable", wrong, r)
		}
	}
	delete(vars, "GPU_COST_PER_HOUR")
	fakeFlux(t, `"jobs -o json f2oLkTLb") echo '{"state":"RUN"}';;`)
	if r := record(); r.code != 1 || !strings.Contains(r.out, "still in state RUN") {
		t.Errorf("got %+v, want that the job runs", r)
	}
}

func FuzzParseFluxJob(f *testing.F) {
	for _, seed := range []string{`{"state":"INACTIVE","runtime":3600,"ncores":8,"ngpus":4}`, `{"jobs":[]}`, `[`, `{"state":"INACTIVE","runtime":1,"R":` + fluxR1 + `}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		j, err := parseFluxJob(out)
		if err != nil {
			return
		}
		if gpu, cpu, err := j.hours(); err == nil && !(gpu >= 0 && cpu >= 0 && gpu <= maxAmount*maxAmount && cpu <= maxAmount*maxAmount) {
			t.Errorf("%.200q: got %v and %v hours, want finite numbers that are not negative", out, gpu, cpu)
		}
	})
}
