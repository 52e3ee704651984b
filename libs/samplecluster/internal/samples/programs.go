package samples

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// registry is the host part of every image; the name is reserved, so it exists nowhere.
const registry = "registry.example/"

// webProgram is a program that serves HTTP on a port with the usual probe paths.
func webProgram(name string, port int32, memory string, tags ...string) program.Program {
	return program.Program{
		Repository: registry + name, Tags: tags, Commands: []string{"server"}, Port: port, Memory: resource.MustParse(memory), CPU: resource.MustParse("12m"),
		Paths:  []string{"/", "/healthz", "/readyz"},
		Start:  []string{"INFO starting", "INFO listening on 0.0.0.0"},
		Repeat: "INFO requests served, no errors", Every: 30 * time.Second,
	}
}

func modifyProgram(p program.Program, change func(*program.Program)) program.Program {
	change(&p)
	return p
}

// Registry returns the images that the sample cluster's nodes can pull, and what is in them.
func Registry() *program.Registry {
	return program.NewRegistry([]program.Program{
		modifyProgram(webProgram("shop/api", 8080, "90Mi", "1.8.0", "1.9.0"), func(p *program.Program) { p.Needs = []string{"DATABASE_URL"} }),
		webProgram("shop/web", 8080, "60Mi", "2.3.0", "2.3.1"),
		webProgram("shop/catalog", 8080, "70Mi", "1.4.2"),
		webProgram("shop/cart", 8080, "70Mi", "3.1.0"),
		webProgram("payments/ledger", 8080, "150Mi", "5.0.1"),
		webProgram("payments/gateway", 8080, "60Mi", "2.7.0"),
		webProgram("payments/settlements", 8080, "60Mi", "1.2.0"),
		webProgram("payments/checkout", 8080, "60Mi", "4.2.0"),
		webProgram("media/transcoder", 8080, "400Mi", "7.1.0"),
		webProgram("media/thumbnails", 8080, "60Mi", "2.0.3"),
		webProgram("media/player", 8080, "60Mi", "6.4.0"),
		webProgram("media/gallery", 8080, "60Mi", "1.1.0"),
		webProgram("team-a/worker", 8080, "60Mi", "1.0.0"),
		modifyProgram(webProgram("crm/app", 8080, "60Mi", "9.3.0"), func(p *program.Program) { p.Peer = "API_ADDR" }),
		webProgram("crm/api", 8080, "60Mi", "9.3.0"),
		webProgram("crm/billing", 8080, "60Mi", "2.2.0"),
		{Repository: registry + "crm/wait-for", Tags: []string{"1.0"}, Peer: "WAIT_FOR", WaitsForPeer: true, Start: []string{"waiting until the peer accepts connections"}},
		{Repository: registry + "reports/nightly", Tags: []string{"3.0.0"}, Runs: 2 * time.Second, Start: []string{"INFO report started", "INFO report written"}},
		{Repository: registry + "base/postgres", Tags: []string{"16.4", "17.2"}, Port: 5432, Memory: resource.MustParse("120Mi"), Start: []string{"LOG: database system is ready to accept connections"}},
		{Repository: registry + "base/redis", Tags: []string{"7.4"}, Port: 6379, Memory: resource.MustParse("40Mi"), Start: []string{"* Ready to accept connections tcp"}},
		{Repository: registry + "system/coredns", Tags: []string{"1.12.1"}, Port: 53, Memory: resource.MustParse("30Mi"), Start: []string{".:53", "CoreDNS-1.12.1"}},
		{Repository: registry + "system/kube-proxy", Tags: []string{"v1.36.3"}, Memory: resource.MustParse("30Mi"), Start: []string{"Starting kube-proxy"}},
	})
}
