package report

// Table is a table by its name, which is also that of the intent of a question for it.
type Table struct {
	Name, About string
	Make        func(View) Answer
}

// Tables are the tables of a namespace, of an object or of the cluster that need no more than a view.
var Tables = []Table{
	{"overview", "objects counted by namespace", Overview},
	{"health", "workloads with their ready and wanted pods, incomplete ones first", Health},
	{"unhealthy_pods", "pods that are not healthy", UnhealthyPods},
	{"warnings", "warning events, newest first", func(v View) Answer { return Events(v, true) }},
	{"events", "events, newest first", func(v View) Answer { return Events(v, false) }},
	{"restarts", "restarted containers, the most restarts first", Restarts},
	{"starts", "when containers started last", Starts},
	{"capacity", "requests and allocatable resources of the nodes", Capacity},
	{"quotas", "the used part of each quota", Quotas},
	{"no_limits", "containers that lack limits or requests", NoLimits},
	{"empty_services", "services that lead to no ready pod", EmptyServices},
	{"external", "what can be reached from outside of the cluster", External},
	{"recent_changes", "what was created, rolled out or scaled, newest first", RecentChanges},
	{"images", "images of the workloads, and what their pods really run", Images},
	{"idle", "what looks unused: scaled to 0, suspended, or mounted by nothing", Idle},
	{"env_secrets", "variables from Secrets, and those that look like secrets in plain text; no values", EnvSecrets},
	{"secrets", "Secrets by name and key, never by value", Secrets},
	{"keys", "keys of ConfigMaps and Secrets, never their values", Keys},
}

// TableNamed returns the table with a name, or nil.
func TableNamed(name string) *Table {
	for i := range Tables {
		if Tables[i].Name == name {
			return &Tables[i]
		}
	}
	return nil
}
