package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mlp-platform/platform/libs/coord/redisurl"
)

// Redis is a Store in Redis, which ends the entries itself. A Redis that evicts keys when its memory is full would
// forget revocations; its maxmemory-policy must be noeviction.
type Redis struct {
	client *redis.Client
	prefix string
}

var _ Store = (*Redis)(nil)

// NewRedis takes a URL such as redis://user:password@host:6379/0, or one of sentinels; see [redisurl.Connect]. All keys
// begin with prefix. It does not connect yet.
func NewRedis(url, prefix string) (*Redis, error) {
	client, err := redisurl.Connect(url, time.Second, time.Second)
	if err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	return &Redis{client: client, prefix: prefix}, nil
}

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }

// Ping reports whether Redis answers.
func (r *Redis) Ping(ctx context.Context) error { return wrapStore("ping", r.client.Ping(ctx).Err()) }

// Put implements Store.
func (r *Redis) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := checkEntry(key, ttl); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return wrapStore("put", r.client.Set(ctx, r.prefix+key, value, ttl).Err())
}

// Get implements Store.
func (r *Redis) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	value, err := r.client.Get(ctx, r.prefix+key).Bytes()
	return value, wrapStore("get", err)
}

// Take implements Store.
func (r *Redis) Take(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	value, err := r.client.GetDel(ctx, r.prefix+key).Bytes()
	return value, wrapStore("take", err)
}

// Delete implements Store.
func (r *Redis) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return wrapStore("delete", r.client.Del(ctx, r.prefix+key).Err())
}

func wrapStore(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return ErrNotFound
	}
	return fmt.Errorf("session store: %s: %w", what, err)
}
