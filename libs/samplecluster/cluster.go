// Package samplecluster is a small Kubernetes cluster inside the process, for users without a cluster.
//
// It answers the Kubernetes API to client-go over an in-memory connection, runs the controllers, scheduler and kubelets that a
// change would set off, and starts with namespaces in which workloads are broken in the usual ways, beside healthy ones.
// No container runs: package program simulates what a program would do.
package samplecluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/apiserver"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/controllers"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/samples"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// Host is the address in the cluster's rest.Config. It leads nowhere but through the config's own transport.
const Host = "http://seeded-cluster.invalid"

// Cluster is a running sample cluster.
type Cluster struct {
	now       func() time.Time
	store     *store.Store
	manager   *controllers.Manager
	listener  *pipeListener
	server    *http.Server
	transport *http.Transport
	stop      context.CancelFunc
	running   sync.WaitGroup
	once      sync.Once
}

// New starts a cluster whose objects are as old, and whose failures as many, as the samples define, relative to now().
// It returns when the cluster has settled.
func New(now func() time.Time) *Cluster {
	ctx, stop := context.WithCancel(context.Background())
	c := &Cluster{now: now, store: store.New(), manager: controllers.New(samples.Registry()), listener: newPipeListener(), stop: stop}
	c.store.Do(func(tx store.Tx) { samples.Seed(tx, c.manager, now()) })
	c.server = &http.Server{
		Handler:           apiserver.New(c.store, c.manager, now),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	c.transport = &http.Transport{DialContext: c.listener.dial, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, DisableCompression: true}
	c.running.Go(func() {
		if err := c.server.Serve(c.listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			panic(err) // the pipe listener knows no other error
		}
	})
	c.running.Go(func() { c.control(ctx) })
	return c
}

// Config returns a configuration for clients of the cluster. Each caller gets its own copy. It sets JSON as the content
// type: the cluster supports nothing else, and typed clients would send protobuf.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host: Host, Transport: c.transport, QPS: -1, UserAgent: "cluster-assistant",
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// Close ends the cluster and all requests to it. It may be called more than once.
func (c *Cluster) Close() {
	c.once.Do(func() {
		c.stop()
		_ = c.server.Close() // closing pipes cannot fail
		c.transport.CloseIdleConnections()
	})
	c.running.Wait()
}

// control runs the controllers after every change and at the times they requested.
func (c *Cluster) control(ctx context.Context) {
	for {
		var next time.Time
		var settled uint64
		c.store.Do(func(tx store.Tx) {
			next = c.manager.Settle(tx, c.now())
			settled = tx.Version()
		})
		moved, version := c.store.Moved()
		if version != settled && ctx.Err() == nil {
			continue // a request came in between
		}
		var timer <-chan time.Time
		var alarm *time.Timer
		if !next.IsZero() {
			alarm = time.NewTimer(max(next.Sub(c.now()), time.Millisecond))
			timer = alarm.C
		}
		select {
		case <-moved:
		case <-timer:
		case <-ctx.Done():
		}
		if alarm != nil {
			alarm.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}
