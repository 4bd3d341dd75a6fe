package names

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Host is a computer.
type Host struct {
	Name  string
	Nodes []fabric.NodeID // its adapters, ascending
}

// Why an adapter is no host, where that is not its kind.
const (
	unnamed   = "no name of a host in the description"
	ambiguous = "several adapters have this description"
)

// Hosts finds the hosts of a fabric, in natural order: adapters of some kinds by the names in
// their descriptions. pattern finds the name by its first group, or without groups by the whole
// match; nil takes one word, or those that HostOf knows. leftOut has all other adapters by the
// reason.
func Hosts(f *fabric.Fabric, pattern *regexp.Regexp, kinds ...fabric.Kind) (hosts []Host, leftOut map[string][]fabric.NodeID) {
	leftOut = make(map[string][]fabric.NodeID)
	byName := make(map[string][]fabric.NodeID)
	described := make(map[string]int)
	for n := range fabric.NodeID(f.NumNodes()) {
		described[f.Name(n).Text]++
	}
	for n := fabric.NodeID(f.NumSwitches()); n < fabric.NodeID(f.NumNodes()); n++ {
		description := f.Name(n).Text
		name := hostName(description, pattern)
		reason := ""
		switch kind := f.Kind(n); {
		case !slices.Contains(kinds, kind):
			reason = kind.String()
		case name == "" || name == "localhost":
			reason = unnamed
		case described[description] > 1 && description != name: // "localhost mlx5_0"
			reason = ambiguous
		default:
			byName[name] = append(byName[name], n)
			continue
		}
		leftOut[reason] = append(leftOut[reason], n)
	}
	for _, name := range text.SortNatural(slices.Collect(maps.Keys(byName))) {
		hosts = append(hosts, Host{name, byName[name]})
	}
	return hosts, leftOut
}

// hostName is the name of the host in a description, "" for none.
func hostName(description string, pattern *regexp.Regexp) string {
	if pattern == nil {
		if host, _, ok := HostOf(description); ok {
			return Plain(host)
		}
		if words := strings.Fields(description); len(words) == 1 {
			return Plain(words[0])
		}
		return ""
	}
	m := pattern.FindStringSubmatch(description)
	if m == nil {
		return ""
	}
	return Plain(m[min(1, len(m)-1)])
}

// Plain is a text with the characters alone that names of hosts and switches have in Slurm; a
// run of others becomes -.
func Plain(s string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '.', r == '-':
			return r
		}
		return ' '
	}, s)
	return strings.Join(strings.Fields(clean), "-")
}
