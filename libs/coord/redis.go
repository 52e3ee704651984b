package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/mlp-platform/platform/libs/coord/redisurl"
)

// Redis keeps everything in one Redis. What it forgets with its memory are leases,
// once-keys and counts; fences stay above earlier ones because they follow its clock.
type Redis struct {
	client *redis.Client
	prefix string
}

var _ Coordinator = (*Redis)(nil)

// NewRedis takes a URL such as redis://user:password@host:6379/0, or one of sentinels; see [redisurl.Connect]. All
// keys begin with prefix. It does not connect yet.
func NewRedis(url, prefix string) (*Redis, error) {
	client, err := redisurl.Connect(url, 2*time.Second, time.Second)
	if err != nil {
		return nil, fmt.Errorf("coord: %w", err)
	}
	return &Redis{client: client, prefix: prefix}, nil
}

// Kind is redis.
func (*Redis) Kind() string { return "redis" }

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }

// Ping reports whether Redis answers.
func (r *Redis) Ping(ctx context.Context) error {
	return wrapUnavailable("ping", r.client.Ping(ctx).Err())
}

// Every script reads Redis' clock, never the caller's.
const clock = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
`

var (
	// The fence follows the clock in milliseconds, and the last fence when that is
	// ahead, so that it rises even when Redis has lost everything.
	takeLease = redis.NewScript(clock + `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'EX', 86400)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence`)
	renewLease = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	releaseLease = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0`)
	countAct = redis.NewScript(`
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n > tonumber(ARGV[1]) then return {n, redis.call('PTTL', KEYS[1])} end
n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {n, redis.call('PTTL', KEYS[1])}`)

	// A breaker is a hash of failures, opened (ms) and trial (ms until which one runs).
	breakerRead = `
local b = redis.call('HMGET', KEYS[1], 'failures', 'opened', 'trial')
local failures, opened, trial = tonumber(b[1] or '0'), tonumber(b[2] or '0'), tonumber(b[3] or '0')
local reset = tonumber(ARGV[1])
local left = 0
if opened > 0 then left = math.max(opened + reset - now, 0); if left == 0 then left = math.max(trial - now, 0) end end
`
	breakerAllow = redis.NewScript(clock + breakerRead + `
if opened == 0 then return {1, 0, 0} end
if left > 0 then return {0, 0, left} end
redis.call('HSET', KEYS[1], 'trial', string.format('%.0f', now + reset))
return {1, 1, 0}`)
	breakerReport = redis.NewScript(clock + breakerRead + `
local failed, ontrial, failmax = ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
if opened > 0 and not ontrial then return 0 end
if not failed then redis.call('DEL', KEYS[1]); return 0 end
failures = failures + 1
redis.call('HSET', KEYS[1], 'failures', failures)
redis.call('EXPIRE', KEYS[1], 86400)
if not ontrial and failures < failmax then return 0 end
redis.call('HSET', KEYS[1], 'opened', string.format('%.0f', now), 'trial', 0)
return 1`)
	breakerState = redis.NewScript(clock + breakerRead + `
local state = 0
if opened > 0 then state = 1; if opened + reset <= now then state = 2 end end
return {state, failures, left}`)
)

func (r *Redis) key(kind, name string) string { return r.prefix + kind + ":" + name }

// TryLease is part of Coordinator.
func (r *Redis) TryLease(ctx context.Context, name string, ttl time.Duration) (*Lease, bool, error) {
	key, owner := r.key("lease", name), uuid.NewString()
	begin := time.Now()
	fence, err := takeLease.Run(ctx, r.client, []string{key, r.key("fence", name)}, owner, ttl.Milliseconds()).Int64()
	if err != nil || fence == 0 {
		return nil, false, wrapUnavailable("take lease "+name, err)
	}
	return &Lease{
		Name: name, Fence: fence, ttl: ttl, expires: begin.Add(ttl),
		renew: func(ctx context.Context) (bool, error) {
			n, err := renewLease.Run(ctx, r.client, []string{key}, owner, ttl.Milliseconds()).Int()
			return n == 1, wrapUnavailable("renew lease "+name, err)
		},
		release: func(ctx context.Context) error {
			return wrapUnavailable("release lease "+name, releaseLease.Run(ctx, r.client, []string{key}, owner).Err())
		},
	}, true, nil
}

// Once is part of Coordinator.
func (r *Redis) Once(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	first, err := r.client.SetNX(ctx, r.key("once", key), 1, ttl).Result()
	return first, wrapUnavailable("once-key", err)
}

// Allow is part of Coordinator.
func (r *Redis) Allow(ctx context.Context, key string, limit int, window time.Duration) (Decision, error) {
	if limit <= 0 {
		return Decision{OK: true}, nil
	}
	v, err := countAct.Run(ctx, r.client, []string{r.key("rate", key)}, limit, window.Milliseconds()).Int64Slice()
	if err == nil && len(v) != 2 {
		err = fmt.Errorf("unexpected answer %v", v)
	}
	if err != nil {
		return Decision{}, wrapUnavailable("rate limit", err)
	}
	return decideRate(v[0], limit, time.Duration(v[1])*time.Millisecond), nil
}

func (r *Redis) breaker(ctx context.Context, s *redis.Script, name string, args ...any) ([]int64, error) {
	v, err := s.Run(ctx, r.client, []string{r.key("breaker", name)}, args...).Int64Slice()
	if err == nil && len(v) != 3 {
		err = fmt.Errorf("unexpected answer %v", v)
	}
	return v, wrapUnavailable("breaker "+name, err)
}

// BreakerAllow is part of Coordinator.
func (r *Redis) BreakerAllow(ctx context.Context, name string, reset time.Duration) (BreakerDecision, error) {
	v, err := r.breaker(ctx, breakerAllow, name, reset.Milliseconds())
	if err != nil {
		return BreakerDecision{}, err
	}
	return BreakerDecision{OK: v[0] == 1, Trial: v[1] == 1, RetryAfter: time.Duration(v[2]) * time.Millisecond}, nil
}

// BreakerReport is part of Coordinator.
func (r *Redis) BreakerReport(ctx context.Context, name string, rep BreakerReport) (bool, error) {
	n, err := breakerReport.Run(ctx, r.client, []string{r.key("breaker", name)}, rep.Reset.Milliseconds(), boolToInt(rep.Failed), boolToInt(rep.Trial), rep.FailMax).Int()
	return n == 1, wrapUnavailable("breaker "+name, err)
}

// BreakerState is part of Coordinator.
func (r *Redis) BreakerState(ctx context.Context, name string, reset time.Duration) (BreakerState, error) {
	v, err := r.breaker(ctx, breakerState, name, reset.Milliseconds())
	if err != nil {
		return BreakerState{}, err
	}
	return BreakerState{State: []string{Closed, Open, HalfOpen}[v[0]], Failures: int(v[1]), RetryAfter: time.Duration(v[2]) * time.Millisecond}, nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SetConfig is part of Coordinator.
func (r *Redis) SetConfig(ctx context.Context, key string, value []byte) error {
	if value == nil {
		return wrapUnavailable("remove setting "+key, r.client.HDel(ctx, r.prefix+"config", key).Err())
	}
	return wrapUnavailable("set "+key, r.client.HSet(ctx, r.prefix+"config", key, value).Err())
}

// GetConfig is part of Coordinator.
func (r *Redis) GetConfig(ctx context.Context, key string) ([]byte, bool, error) {
	v, err := r.client.HGet(ctx, r.prefix+"config", key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	return v, err == nil, wrapUnavailable("get "+key, err)
}

// WatchConfig is part of Coordinator.
func (r *Redis) WatchConfig(ctx context.Context, fn func(string, []byte)) error {
	return watchConfig(ctx, func(ctx context.Context) (map[string][]byte, error) {
		all, err := r.client.HGetAll(ctx, r.prefix+"config").Result()
		if err != nil {
			return nil, wrapUnavailable("settings", err)
		}
		out := make(map[string][]byte, len(all))
		for k, v := range all {
			out[k] = []byte(v)
		}
		return out, nil
	}, fn)
}
