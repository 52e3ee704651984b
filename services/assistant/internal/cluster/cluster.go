package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mlp-platform/platform/services/assistant/internal/helmrelease"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

const (
	userAgent = "cluster-assistant"
	// callLimit is the timeout of a single call, whatever its context: the longest call of the tools is a write.
	callLimit = 60 * time.Second
	// page is the number of objects per list call.
	page = 500
)

// Options select the cluster. All may be zero.
type Options struct {
	// Kubeconfig is a file, or several as in KUBECONFIG. Empty: the cluster that the process runs in, else the seeded one.
	Kubeconfig string
	// Context of the kubeconfig; empty is its current one.
	Context string
	// Config leads to a cluster that is not looked up, such as a recording; nil looks for one.
	Config *rest.Config
	// Name is the name of the cluster in answers; if empty, that of the context.
	Name string
	// Seeded starts the sample cluster. It is called at the first call to the cluster, and only if there is no other
	// one. The returned function ends that cluster; it may be nil.
	Seeded func() (*rest.Config, func())
	Log    *slog.Logger
	// Redacted counts redacted values, by kind.
	Redacted func(kind string, n int)
}

// Cluster is safe for concurrent use.
type Cluster struct {
	name    string
	seeded  bool
	log     *slog.Logger
	stop    func()
	http    *http.Client
	typed   *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	kinds   *kinds
	seen    atomic.Int64 // unix nanoseconds of the last answer; 0: none yet
	uid     struct {
		sync.Mutex
		value string // guarded by Mutex
	}
	closed context.Context // ends with Close
	end    context.CancelFunc
	close  sync.Once
}

// Open selects the cluster and creates the clients. It makes no call: a cluster that does not answer is no error.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &Cluster{name: o.Name, log: o.Log, stop: func() {}}
	c.closed, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	cfg, err := c.config(o)
	if err == nil {
		err = c.connect(cfg, o.Redacted)
	}
	if err != nil {
		c.end()
		c.stop()
		return nil, err
	}
	return c, nil
}

// config finds the cluster: that of the kubeconfig, otherwise the one the process runs in, otherwise the sample
// cluster.
func (c *Cluster) config(o Options) (*rest.Config, error) {
	if o.Config != nil {
		c.setName("recorded")
		return o.Config, nil
	}
	if o.Kubeconfig != "" {
		loader := load(o.Kubeconfig, o.Context)
		raw, err := loader.RawConfig()
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig %s: %w", o.Kubeconfig, err)
		}
		if len(raw.Contexts) == 0 {
			return nil, fmt.Errorf("the kubeconfig %s does not exist or has no context", o.Kubeconfig)
		}
		used := o.Context
		if used == "" {
			used = raw.CurrentContext
		}
		if raw.Contexts[used] == nil {
			return nil, fmt.Errorf("the kubeconfig %s has no context %q; set its current-context", o.Kubeconfig, used)
		}
		cfg, err := loader.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("use context %q of the kubeconfig %s: %w", used, o.Kubeconfig, err)
		}
		c.setName(used)
		return cfg, nil
	}
	cfg, err := rest.InClusterConfig()
	switch {
	case err == nil:
		c.setName("in-cluster")
		return cfg, nil
	case !errors.Is(err, rest.ErrNotInCluster):
		return nil, fmt.Errorf("use the cluster that the process runs in: %w", err)
	case o.Seeded == nil:
		return nil, errors.New("no cluster: set KUBECONFIG")
	}
	l := &lazy{start: o.Seeded}
	c.stop, c.seeded = l.close, true
	c.setName("seeded")
	return l.config(), nil
}

// load returns a configuration that reads the files of a kubeconfig on first use.
func load(kubeconfig, context string) clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig), WarnIfAllMissing: false},
		&clientcmd.ConfigOverrides{CurrentContext: context})
}

// Contexts returns the names of the contexts of a kubeconfig, sorted.
func Contexts(kubeconfig string) ([]string, error) {
	raw, err := load(kubeconfig, "").RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	if len(raw.Contexts) == 0 {
		return nil, fmt.Errorf("the kubeconfig %s does not exist or has no context", kubeconfig)
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), nil
}

func (c *Cluster) setName(name string) {
	if c.name == "" {
		c.name = name
	}
}

// connect creates the clients, all on one HTTP client that redacts.
func (c *Cluster) connect(cfg *rest.Config, redacted func(string, int)) (err error) {
	cfg = rest.CopyConfig(cfg)
	// No rate limit here: the budget of a turn and the server's fairness limit the calls, and a limit here would only
	// make one conversation wait for another.
	cfg.QPS, cfg.Burst, cfg.RateLimiter = -1, 0, nil
	cfg.UserAgent, cfg.Timeout = userAgent, callLimit
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, collector{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &watcher{redact.Transport(next, redacted), &c.seen, c.closed}
	})
	if c.http, err = rest.HTTPClientFor(cfg); err != nil {
		return fmt.Errorf("reach cluster %s: %w", c.name, err)
	}
	if c.typed, err = kubernetes.NewForConfigAndClient(cfg, c.http); err != nil {
		return fmt.Errorf("reach cluster %s: %w", c.name, err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, c.http); err != nil {
		return fmt.Errorf("reach cluster %s: %w", c.name, err)
	}
	c.kinds = newKinds(c.typed.Discovery())
	return nil
}

// Name returns the name of the cluster in answers.
func (c *Cluster) Name() string { return c.name }

// Seeded reports whether this is the sample cluster.
func (c *Cluster) Seeded() bool { return c.seeded }

// Typed returns the client of the built-in kinds. It cannot decode a Secret, see [Cluster.SecretKeys].
func (c *Cluster) Typed() kubernetes.Interface { return c.typed }

// Dynamic returns the client of all kinds.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Discovery returns what the cluster serves, from the cache if possible. [Cluster.Resolve] refreshes it.
func (c *Cluster) Discovery() discovery.DiscoveryInterface { return c.kinds.cache }

// UID identifies this cluster: by the uid of its namespace kube-system.
func (c *Cluster) UID(ctx context.Context) (string, error) {
	c.uid.Lock()
	known := c.uid.value
	c.uid.Unlock()
	if known != "" {
		return known, nil
	}
	ns, err := c.typed.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	c.uid.Lock()
	defer c.uid.Unlock()
	c.uid.value = string(ns.UID)
	return c.uid.value, nil
}

// Namespaces returns the names of all namespaces, sorted. The caller decides which of them a reader may see.
func (c *Cluster) Namespaces(ctx context.Context) ([]string, error) {
	names := []string{}
	err := eachPage(func(o metav1.ListOptions) (string, error) {
		list, err := c.typed.CoreV1().Namespaces().List(ctx, o)
		if err != nil {
			return "", err
		}
		names = slices.Grow(names, len(list.Items))
		for _, ns := range list.Items {
			names = append(names, ns.Name)
		}
		return list.Continue, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Secret is the part of a Secret that may be shown.
type Secret struct {
	Namespace, Name string
	Keys            []string // sorted
	Type            string
	// Certificate is the public part of a TLS Secret's certificate; nil for other Secrets.
	Certificate *redact.Certificate
	// Release is the Helm release revision that the Secret stores; nil for other Secrets. Its keys are not read.
	Release *helmrelease.Release
}

// SecretKeys returns the key names of every Secret in a namespace, or in all if it is empty.
func (c *Cluster) SecretKeys(ctx context.Context, namespace string) ([]Secret, error) {
	certificates := map[[2]string]*redact.Certificate{}
	ctx = redact.WithCertificates(ctx, func(namespace, name string, of redact.Certificate) {
		certificates[[2]string{namespace, name}] = &of
	})
	var all []Secret
	err := eachPage(func(o metav1.ListOptions) (string, error) {
		o.FieldSelector = "type!=" + helmrelease.SecretType // megabytes of values; their labels have all that is needed
		list, err := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for _, s := range list.Items {
			if kind, _ := s.Object["type"].(string); kind == helmrelease.SecretType {
				continue
			}
			data, _ := s.Object["data"].(map[string]any)
			kind, _ := s.Object["type"].(string)
			all = append(all, Secret{s.GetNamespace(), s.GetName(), slices.Sorted(maps.Keys(data)), kind, certificates[[2]string{s.GetNamespace(), s.GetName()}], nil})
		}
		return list.GetContinue(), nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the keys of secrets: %w", err)
	}
	releases, err := c.releases(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return append(all, releases...), nil
}

// eachPage calls list for page after page.
func eachPage(list func(metav1.ListOptions) (next string, err error)) error {
	o := metav1.ListOptions{Limit: page}
	for {
		next, err := list(o)
		if err != nil || next == "" {
			return err
		}
		o.Continue = next
	}
}

// Close cancels all calls, closes the connections and ends the sample cluster. It may be called more than once.
func (c *Cluster) Close() {
	c.close.Do(func() {
		c.end()
		c.http.CloseIdleConnections()
		c.stop()
	})
}
