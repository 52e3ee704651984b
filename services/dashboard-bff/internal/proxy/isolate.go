package proxy

// Policies for what a service sends.
const (
	// sandboxed lets links and forms of a page work, on an opaque origin, and no script.
	sandboxed = "sandbox allow-forms allow-popups"
	// confined lets a tool's page run, with the resources of the page's origin. It cannot send anything anywhere else.
	confined = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)

// isolate sets the headers that keep a service's page from acting as the dashboard. On the dashboard's origin all
// answers get the sandbox, whatever type they declare: it has no effect on anything but pages.
func (x *exchange) isolate() {
	h := x.out.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if x.origin.tools {
		h.Set("Content-Security-Policy", confined)
		h.Set("X-Frame-Options", "SAMEORIGIN")
		h.Set("Referrer-Policy", "same-origin")
		return
	}
	h.Set("Content-Security-Policy", sandboxed)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
}
