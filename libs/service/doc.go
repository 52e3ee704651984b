// Package service holds the code that every HTTP service of the platform
// shares: configuration, logs, probes, metrics, request ids, limits, security
// headers, interactive references and an orderly stop.
//
// The stop, on a cancelled context, a failed worker or a failed listener:
//
//	unready            /readyz answers 503, checks.drain has the reason; connections end after the
//	                   answer, all else is served for Options.DrainDelay (not after a failure)
//	stop intake        new requests get 503 draining and their connection closes
//	end streams        OnDrain functions run
//	finish             requests in flight, at most Options.Drain
//	workers            their context ends; they are waited for
//	close              OnClose functions run, last registered first
package service
