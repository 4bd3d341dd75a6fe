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

// LeftOut is a group of adapters that a command does not take for hosts.
type LeftOut struct {
	Reason string   `json:"reason"`
	Nodes  []string `json:"nodes"` // names, in natural order
}

// ListLeftOut lists what Hosts leaves out, in the order of reasons; never nil.
func ListLeftOut(f *fabric.Fabric, leftOut map[string][]fabric.NodeID) []LeftOut {
	list := []LeftOut{}
	for _, reason := range slices.Sorted(maps.Keys(leftOut)) {
		nodes := []string{}
		for _, n := range leftOut[reason] {
			nodes = append(nodes, f.Name(n).Text)
		}
		list = append(list, LeftOut{reason, text.SortNatural(nodes)})
	}
	return list
}

// Reasons why an adapter is no host, other than its kind.
const (
	unnamed   = "no name of a host in the description"
	ambiguous = "several adapters have this description"
	// NotCabled is for commands that look at cables.
	NotCabled = "not cabled to a switch"
)

// Hosts returns the hosts of a fabric, in natural order: adapters of some kinds, by
// the host that Split finds in their names. leftOut has all other adapters, by reason.
func Hosts(f *fabric.Fabric, pattern *regexp.Regexp, kinds ...fabric.Kind) (hosts []Host, leftOut map[string][]fabric.NodeID) {
	leftOut = make(map[string][]fabric.NodeID)
	byName := make(map[string][]fabric.NodeID)
	for n := fabric.NodeID(f.NumSwitches()); n < fabric.NodeID(f.NumNodes()); n++ {
		called := f.Name(n)
		name, _ := Split(called.Text, pattern)
		reason := ""
		switch kind := f.Kind(n); {
		case !slices.Contains(kinds, kind):
			reason = kind.String()
		case name == "" || name == "localhost":
			reason = unnamed
		case called.GUID != 0 && called.Text != name: // others have this name, too: "localhost mlx5_0"
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

// Split splits the description of an adapter into the names of the host and of the adapter; either is
// "" if it is not found. pattern matches the host by its group "host", or else by its first group, or
// without groups as a whole. It matches the adapter by its group "adapter", or else the adapter is the
// rest of the text. With a nil pattern, HostOf splits the text, or a text of one word is the host.
func Split(description string, pattern *regexp.Regexp) (host, adapter string) {
	if pattern == nil {
		if host, adapter, ok := HostOf(description); ok {
			return Plain(host), adapter
		}
		if words := strings.Fields(description); len(words) == 1 {
			return Plain(words[0]), ""
		}
		return "", ""
	}
	m := pattern.FindStringSubmatchIndex(description)
	if m == nil {
		return "", ""
	}
	group := pattern.SubexpIndex("host")
	if group < 0 {
		group = min(1, len(m)/2-1)
	}
	from, to := m[2*group], m[2*group+1]
	if from < 0 {
		return "", ""
	}
	adapter = description[:from] + description[to:]
	if g := pattern.SubexpIndex("adapter"); g >= 0 {
		adapter = description[max(m[2*g], 0):max(m[2*g+1], 0)]
	}
	return Plain(description[from:to]), strings.Trim(adapter, " -_.:/")
}

// Plain returns text with only the characters that names of
// hosts and switches have in Slurm; a run of others becomes -.
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
