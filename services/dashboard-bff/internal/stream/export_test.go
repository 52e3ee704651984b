package stream

// Newest returns the sequence of the last event that this replica has seen.
func (s *Stream) Newest() uint64 { return s.hub.newest() }

// Admit admits clients without a broker.
func (s *Stream) Admit() { s.hub.admit() }

// Inject publishes a message as if the broker had sent it.
func (s *Stream) Inject(subject string, body []byte, sequence uint64) error {
	e, err := encodeEvent(subject, body, sequence)
	if err != nil {
		return err
	}
	s.hub.publish(e)
	return nil
}

// ParseChannels is parseChannels with texts and matching for tests.
func ParseChannels(text string) (channels []string, matches func(namespace, name string) bool, err error) {
	set, err := parseChannels(text)
	return set.texts(), set.matches, err
}

// Namespaces are those that clients may subscribe to.
var Namespaces = namespaces
