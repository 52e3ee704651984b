package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// errRefused means that an address is one that the trainer does not connect to.
var errRefused = errors.New("address refused")

// The authors of the model repository choose the addresses of public archives. Without a limit, a data set would reach
// what only this machine can: cloud metadata, databases, the platform's own ports.
var (
	notPublic = parsePrefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	global6 = netip.MustParsePrefix("2000::/3")
)

func parsePrefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !global6.Contains(a) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// newArchiveClient connects only to public addresses, unless allowPrivate. A name is resolved once, and the connection
// uses the checked address. The environment's proxy is not used: it would resolve names itself.
func newArchiveClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		var failure error
		for _, a := range addresses {
			if !allowPrivate && !isPublic(a) {
				failure = errors.Join(failure, fmt.Errorf("%w: %s is not public; PUBLIC_ARCHIVE_ALLOW_PRIVATE allows it", errRefused, a.Unmap()))
				continue
			}
			conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
			if err == nil {
				return conn, nil
			}
			failure = errors.Join(failure, err)
		}
		return nil, failure
	}
	return &http.Client{
		Transport: &http.Transport{DialContext: dial, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: headerTimeout,
			MaxResponseHeaderBytes: 256 << 10, DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= 5 {
				return fmt.Errorf("%w: more than 5 redirects", errRefused)
			}
			// Go adds the address before, whose query may be a signature that is meant for its own host alone.
			req.Header.Del("Referer")
			return checkArchiveScheme(req.URL.Scheme, allowPrivate)
		},
	}
}

func checkArchiveScheme(scheme string, allowPrivate bool) error {
	if scheme == "https" || scheme == "http" && allowPrivate {
		return nil
	}
	return fmt.Errorf("%w: a public archive is read over https, not %.20q", errRefused, scheme)
}

// Archive fetches the file of a public archive into dir. A file with another digest than the declared one is not kept.
func (s *Sources) Archive(ctx context.Context, a modelrepo.PublicArchive, dir string) (File, error) {
	ctx, cancel := limitFetch(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return File{}, errors.New("the url is not valid")
	}
	file := File{Path: "archive", Name: path.Base(req.URL.Path)}
	if err := s.fetchArchive(req, a.SHA256, dir, file.Path); err != nil {
		return File{}, fmt.Errorf("public archive %s: %w", req.URL.Host, err)
	}
	return file, nil
}

func (s *Sources) fetchArchive(req *http.Request, digest, dir, name string) error {
	if err := checkArchiveScheme(req.URL.Scheme, s.cfg.AllowPrivate); err != nil {
		return err
	}
	resp, err := s.archive.Do(req)
	if err != nil {
		return wrapCallError(req.Context(), err)
	}
	defer resp.Body.Close()
	if err := checkStatus(resp); err != nil {
		return err
	}
	sum := sha256.New()
	body := answer{resp.Body, func(err error) error { return wrapCallError(req.Context(), err) }}
	if _, err := save(dir, name, io.TeeReader(body, sum), maxBytes); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(digest) {
		err := fmt.Errorf("the file has the SHA-256 %s, the data set declares %s; it is not used", got, strings.ToLower(digest))
		return errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	return nil
}
