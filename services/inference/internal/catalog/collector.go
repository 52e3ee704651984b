package catalog

import "github.com/prometheus/client_golang/prometheus"

// Collector reads the gauges of a catalog when they are collected.
type Collector struct {
	catalog *Catalog
	loaded  *prometheus.Desc
	depth   *prometheus.Desc
	aliases *prometheus.Desc
}

// NewCollector returns the collector of c.
func NewCollector(c *Catalog) *Collector {
	return &Collector{
		catalog: c,
		loaded:  prometheus.NewDesc("models_loaded", "Models with a loaded Production copy.", nil, nil),
		aliases: prometheus.NewDesc("model_aliases", "Aliases of the registry, by whether they are loaded.", []string{"state"}, nil),
		depth:   prometheus.NewDesc("predict_queue_depth", "Rows that wait for a free session.", []string{"model", "alias"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (k *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- k.loaded
	ch <- k.depth
	ch <- k.aliases
}

// Collect implements prometheus.Collector.
func (k *Collector) Collect(ch chan<- prometheus.Metric) {
	r := k.catalog.Residency()
	ch <- prometheus.MustNewConstMetric(k.aliases, prometheus.GaugeValue, float64(r.Resident), "resident")
	ch <- prometheus.MustNewConstMetric(k.aliases, prometheus.GaugeValue, float64(r.Known), "known")
	loaded := 0
	for _, s := range k.catalog.Slots() {
		if s.Alias == Production {
			loaded++
		}
		ch <- prometheus.MustNewConstMetric(k.depth, prometheus.GaugeValue, float64(s.queue.Waiting()), s.Name, s.Alias)
	}
	ch <- prometheus.MustNewConstMetric(k.loaded, prometheus.GaugeValue, float64(loaded))
}
