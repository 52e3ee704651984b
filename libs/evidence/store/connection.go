package store

import (
	"errors"
	"slices"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// encodeConnection checks c and writes it as a row holds it, its lists sorted.
func encodeConnection(c spine.Connection) (string, error) {
	for _, list := range []*[]string{&c.CapabilityTiers, &c.TaskClasses, &c.Tools, &c.CandidateTypes} {
		*list = slices.Sorted(slices.Values(*list))
	}
	document, err := canon.From(c)
	if err != nil {
		return "", err
	}
	if _, err := spine.ReadConnection(document); err != nil {
		return "", err
	}
	text, err := canon.C1(document)
	return string(text), err
}

// decodeConnection decodes a row. The error describes the fault of the record.
func decodeConnection(id, text string) (spine.Connection, error) {
	object, err := canonicalObject(text)
	if err != nil {
		return spine.Connection{}, err
	}
	if err := spine.CheckStorable(object); err != nil {
		return spine.Connection{}, err
	}
	c, err := spine.ReadConnection(object)
	if err == nil && c.ID != id {
		err = errors.New("the record names another connector than its row")
	}
	return c, err
}

// canonicalObject reads a stored document: an object, in form C1 to the byte.
func canonicalObject(text string) (*canon.Object, error) {
	object, err := strictObject(text)
	if err == nil {
		err = checkCanonical(object, text)
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

func strictObject(text string) (*canon.Object, error) {
	value, err := canon.Parse([]byte(text), canon.ObjectRoot())
	if err != nil {
		var syntax *canon.SyntaxError
		if errors.As(err, &syntax) {
			return nil, errors.New("the stored document is no strict JSON object (" + string(syntax.Reason) + ")")
		}
		return nil, err
	}
	return value.(*canon.Object), nil
}

// checkCanonical reports a document that was read from text and would be written otherwise.
func checkCanonical(object *canon.Object, text string) error {
	written, err := canon.C1(object)
	if err == nil && string(written) != text {
		err = errors.New("the stored document is not in canonical form")
	}
	return err
}
