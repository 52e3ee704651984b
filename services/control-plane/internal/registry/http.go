package registry

import (
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// List serves GET /models.
func (r *Registry) List(c echo.Context) error {
	out := []api.Model{}
	for _, m := range r.Models() {
		row := api.Model{ModelName: m.ID(), Datasets: m.DatasetNames()}
		if m.BusUUID != "" && m.Enabled {
			row.BusUuid = &m.BusUUID
		}
		out = append(out, row)
	}
	external := true
	for _, t := range r.External() {
		out = append(out, api.Model{ModelName: t.ID, Datasets: []string{}, External: &external})
	}
	return c.JSON(http.StatusOK, out)
}

// FromPath returns the model that the path names; the error is 404.
func (r *Registry) FromPath(c echo.Context) (*modelrepo.Model, error) {
	if t, ok := r.FindExternal(c.Param("model")); ok {
		return nil, fault.ModelNotFound.New(noDefinition(t))
	}
	return fromPath(r.Repo(), c)
}

func fromPath(repo *modelrepo.Repo, c echo.Context) (*modelrepo.Model, error) {
	if m, ok := repo.Model(c.Param("model")); ok {
		return m, nil
	}
	return nil, fault.ModelNotFound.New("There is no such model; GET /models lists them.")
}

// Meta serves GET /models/{model}/meta.
func (r *Registry) Meta(c echo.Context) error {
	m, err := r.FromPath(c)
	if err != nil {
		return err
	}
	out := api.ModelMeta{
		Name: m.ID(), TrackerName: m.TrackerName(), TaskType: m.TaskType, Type: string(m.Type), Estimator: m.Estimator.Kind,
		SupportedDatasets: m.DatasetNames(), Project: m.Project, Enabled: m.Enabled, Lifecycle: []api.Rung{},
	}
	if m.BusUUID != "" {
		out.BusUuid = &m.BusUUID
	}
	if s := m.Inference.InputSchema; s != nil {
		out.InputSchema = &s
	}
	if s := m.Inference.OutputSchema; s != nil {
		out.OutputSchema = &s
	}
	for _, rung := range m.Lifecycle {
		out.Lifecycle = append(out.Lifecycle, api.Rung{
			Name: rung.Name, Metric: rung.Metric, Threshold: rung.Threshold,
			Direction: api.RungDirection(rung.Direction), BeatsBaseline: rung.BeatsBaseline,
		})
	}
	return c.JSON(http.StatusOK, out)
}

// ReadmeText serves GET /models/{model}/readme.
func (r *Registry) ReadmeText(c echo.Context) error {
	repo := r.Repo() // the model and its file are of one reading
	m, err := fromPath(repo, c)
	if err != nil {
		return err
	}
	text, sha, err := repo.Readme(m)
	if err != nil { // it is missing, a link out of the folder, a folder, or too large
		return fault.ReadmeNotFound.New("Model " + m.ID() + " has no README.md that is a regular file of at most 1 MiB.").WithCause(err)
	}
	return c.JSON(http.StatusOK, api.Readme{Text: string(text), Sha: sha})
}

// svgPolicy allows an SVG its styles and no active content: opened directly in a browser it is a document of this
// origin.
const svgPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// Image serves GET /models/{model}/images/{file}.
func (r *Registry) Image(c echo.Context) error {
	repo := r.Repo()
	m, err := fromPath(repo, c)
	if err != nil {
		return err
	}
	missing := fault.ImageNotFound.New("Model " + m.ID() + " has no such image; it may have png, jpg, jpeg, gif, webp and svg files of at most 8 MiB in its folder images.")
	data, mediaType, err := repo.Image(m, c.Param("file"))
	switch {
	case err != nil: // it is missing, a link out of the folder, a folder, or too large
		return missing.WithCause(err)
	case mediaType == svg:
		c.Response().Header().Set("Content-Security-Policy", svgPolicy)
	case http.DetectContentType(data) != mediaType:
		return missing // another file type with the name of an image
	}
	return c.Blob(http.StatusOK, mediaType, data)
}

const svg = "image/svg+xml"
