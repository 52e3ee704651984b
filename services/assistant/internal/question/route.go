package question

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Route is a network connection that a sentence is about: "can web reach db on port 5432?"
type Route struct {
	From, To End
	Port     int32 // 0: not given
}

// End is one side of a Route: an object, a host name, or an address outside.
type End struct {
	Kind, Name, Namespace string
	// Next is the word after Name, which is the name if Name is a namespace: "crm app".
	Next    string
	Address netip.Addr
	Outside bool // somewhere outside the cluster
}

func (e End) isSaid() bool { return e.Name != "" || e.Address.IsValid() || e.Outside }

var (
	// reachVerbs separate the two sides.
	reachVerbs = Words(`reach reaches reached reaching connect connects connected connecting talk talks talking access accesses accessing call calls calling
		ping pings contact contacts contacting curl curls`)
	// outsideWords are words for what is outside the cluster.
	outsideWords = Words("internet outside world")
	// routeFillers may surround a name and are none.
	routeFillers = Words(`can could may might must does do did is are was will would why when how what not no longer be been able unable allowed permitted to with the a an my our
		its this that still even pods pod traffic connection connections request requests packets from and but so if then cannot fail fails failing failed gets get
		on at over via through itself other any all its it`)
	// asksWhether matches the beginning of a yes/no question.
	asksWhether = Pattern(`^(can|could|does|do|is|are|may|will|would)\b`)
	// asksForTraffic matches the words that make "from A to B" a network question.
	asksForTraffic = Pattern(`\b(traffic|connections?|connect\w*|requests?|packets?|reach\w*|network|calls?|access|tcp|http)\b`)
)

// readRoute returns the connection that a sentence is about, or nil.
func readRoute(s sentence) *Route {
	low := make([]string, 0, len(s.words))
	for _, w := range s.words {
		low = append(low, w.low)
	}
	left, right := splitRoute(low, s.low)
	if left == nil || right == nil {
		return nil
	}
	var r Route
	r.From, _ = readEnd(left, s.knows)
	r.To, r.Port = readEnd(right, s.knows)
	if !r.From.isSaid() || !r.To.isSaid() || r.From.Name == r.To.Name && r.From.Namespace == r.To.Namespace {
		return nil
	}
	return &r
}

// splitRoute returns the words of each side.
func splitRoute(words []string, low string) (left, right []string) {
	if from := slices.Index(words, "from"); from >= 0 && asksForTraffic.MatchString(low) {
		rest := words[from+1:]
		if to := slices.Index(rest, "to"); to > 0 {
			return rest[:to], rest[to+1:]
		}
	}
	at := slices.IndexFunc(words, func(w string) bool { return reachVerbs[w] })
	if through := slices.Index(words, "through"); at < 0 && through > 1 && through+1 < len(words) && words[through+1] == "to" {
		at = through // "does web get through to db?"
	}
	if at < 1 || at+1 >= len(words) {
		return nil, nil
	}
	return words[:at], words[at+1:]
}

// readEnd reads one side, and its port.
func readEnd(words []string, known Named) (End, int32) {
	var e End
	var port int32
	fallback := "" // an ordinary word that may still be a name
	for i := 0; i < len(words); i++ {
		w := words[i]
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		host, digits, hasPort := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(w, "http://"), "https://"), ":")
		switch {
		case (w == "port" || w == "on" || w == "tcp" || w == "udp") && portOf(next) > 0:
			port = portOf(next)
			i++
		case portOf(w) > 0 && e.isSaid():
			port = portOf(w)
		case outsideWords[w]:
			e.Outside = true
		case (w == "in" || w == "namespace") && operation.ValidName(next) && next != "namespace" && !articles[next]:
			e.Namespace = next
			i++
		case routeFillers[w] || w == "in" || w == "namespace":
		case kindOf(w) != "":
			e.Kind = kindOf(w)
		case e.isSaid():
			if e.Next == "" && i > 0 && words[i-1] == e.Name && operation.ValidName(w) {
				e.Next = w
			}
		default:
			if hasPort && portOf(digits) > 0 {
				w, port = host, portOf(digits)
			}
			w, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(w, "http://"), "https://"), "/ ")
			if address, err := netip.ParseAddr(w); err == nil {
				e.Address = address
				continue
			}
			first, name, slash := strings.Cut(w, "/")
			switch {
			case slash && kindOf(first) != "" && operation.ValidName(name):
				e.Kind, e.Name = kindOf(first), name
			case slash && operation.ValidName(first) && operation.ValidName(name):
				e.Namespace, e.Name = first, name
			case !operation.ValidName(w):
			case isRead(w) && !known(w):
				fallback = w
			default:
				e.Name = w
			}
		}
	}
	if !e.isSaid() {
		e.Name = fallback
	}
	return e, port
}

func portOf(word string) int32 {
	n, err := strconv.ParseUint(word, 10, 16)
	if err != nil {
		return 0
	}
	return int32(n)
}
