package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// maxObjects of a data set; a listing may contain more that do not match.
const (
	maxObjects = 10_000
	maxListed  = 1_000_000
)

// Objects fetches the objects below the prefix whose names match one of the patterns (all without patterns) into dir,
// in the order of their names.
func (s *Sources) Objects(ctx context.Context, o modelrepo.ObjectStore, patterns []string, dir string) ([]File, error) {
	if s.cfg.S3Endpoint == "" {
		return nil, errors.New("the object store is not configured; set S3_ENDPOINT")
	}
	ctx, cancel := limitFetch(ctx)
	defer cancel()
	client, closeIdle, err := s.objectClient()
	if err != nil {
		return nil, err
	}
	defer closeIdle()
	files, err := fetchObjects(ctx, client, o, patterns, dir)
	if err != nil {
		return nil, fmt.Errorf("object store, bucket %s: %w", o.Bucket, err)
	}
	return files, nil
}

func (s *Sources) objectClient() (*minio.Client, func(), error) {
	u, err := url.Parse(s.cfg.S3Endpoint)
	if err != nil {
		return nil, nil, errors.New("S3_ENDPOINT is not an address")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = headerTimeout
	transport.DisableCompression = true // objects are kept as they are
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(s.cfg.S3AccessKey, s.cfg.S3SecretKey, ""), Secure: u.Scheme == "https",
		Region: s.cfg.S3Region, Transport: transport, BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
	})
	return client, transport.CloseIdleConnections, err
}

func fetchObjects(ctx context.Context, client *minio.Client, o modelrepo.ObjectStore, patterns []string, dir string) ([]File, error) {
	prefix := strings.TrimPrefix(o.Prefix, "/")
	keys, err := listObjects(ctx, client, o.Bucket, prefix, patterns)
	if err != nil {
		return nil, err
	}
	var files []File
	left := int64(maxBytes)
	for i, key := range keys {
		object, err := client.GetObject(ctx, o.Bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return nil, storeError(ctx, err)
		}
		// An object's name is the store's choice, so it never becomes a path here.
		file := File{Path: fmt.Sprintf("object-%d", i), Name: strings.TrimPrefix(key, prefix)}
		n, err := save(dir, file.Path, answer{object, func(err error) error { return storeError(ctx, err) }}, left)
		if err := errors.Join(err, object.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		left -= n
		files = append(files, file)
	}
	return files, nil
}

func listObjects(ctx context.Context, client *minio.Client, bucket, prefix string, patterns []string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	var keys []string
	listed := 0
	for object := range client.ListObjectsIter(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, storeError(ctx, object.Err)
		}
		if listed++; listed > maxListed {
			return nil, fmt.Errorf("more than %d objects lie below %q; name a longer prefix", maxListed, prefix)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(object.Key, prefix), "/")
		if strings.HasSuffix(object.Key, "/") || len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := path.Match(p, name) // checked when the data set was read
			return ok
		}) {
			continue
		}
		if keys = append(keys, object.Key); len(keys) > maxObjects {
			return nil, fmt.Errorf("more than %d objects match; name a longer prefix or files", maxObjects)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("no object below %q matches %q", prefix, patterns)
	}
	slices.Sort(keys)
	return keys, nil
}

// storeError separates refusals by the store from transient failures.
func storeError(ctx context.Context, err error) error {
	if code := minio.ToErrorResponse(err).StatusCode; code >= 400 && code < 500 {
		return err
	}
	return wrapCallError(ctx, err)
}
