// Package redisurl makes Redis clients from a URL, which names one server or its sentinels.
package redisurl

import (
	"errors"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
)

// errURL does not quote the URL, which may hold a password.
var errURL = errors.New("the Redis URL cannot be read; it must look like redis://user:password@host:6379/0, or with sentinels like " +
	"redis://:password@sentinel-1:26379/0?master_name=platform&addr=sentinel-2:26379&addr=sentinel-3:26379")

// Connect returns a client of the server that the URL names, without connecting yet. A URL with master_name names
// sentinels: the client queries them for the master, and follows when they promote another. The password is that of the
// servers and, unless password= names another for the servers, also of the sentinels.
//
// A command that finds no server is retried once; callers have fallbacks, and users are waiting.
func Connect(text string, dial, io time.Duration) (*redis.Client, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, errURL
	}
	if !parsed.Query().Has("master_name") {
		o, err := redis.ParseURL(text)
		if err != nil {
			return nil, errURL
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dial, io, io
		o.ContextTimeoutEnabled = true
		o.MaxRetries, o.DialerRetries = 1, 1
		o.DisableIdentity = true
		return redis.NewClient(o), nil
	}
	o, err := redis.ParseFailoverURL(text)
	if err != nil || o.MasterName == "" {
		return nil, errURL
	}
	if o.TLSConfig != nil { // the library names the first sentinel; the servers and the others have names of their own
		o.TLSConfig.ServerName = ""
	}
	if o.Password == "" {
		o.Username, o.Password = o.SentinelUsername, o.SentinelPassword
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dial, io, io
	o.ContextTimeoutEnabled = true
	o.MaxRetries, o.DialerRetries = 1, 1
	o.DisableIdentity = true
	return redis.NewFailoverClient(o), nil
}
