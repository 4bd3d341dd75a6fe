package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/compile"
)

// scope says when flags of a command have an effect. A condition is alternatives with
// blanks between them: the name of a flag, which is given, or a flag and its values,
// "engine=xy|updn", which it has, by default too.
type scope struct {
	flags string // names
	with  string // condition that has to hold; "" for none
	not   string // condition that may not hold; "" for none
	why   string // ends the sentence
	// note prints a line on standard error and goes on, since the result is what was
	// asked for: without it a flag that has no effect is wrong usage.
	note bool
}

const (
	grids    = "engine=xy|negative-first|west-first|north-last"
	ordered  = "engine=updn|spam|layered|fattree"
	random   = "nothing is drawn at random then"
	unsaid   = "JSON has all of it"
	noTraces = "the file says what is sent"
)

// scopes has the flags that are without effect unless a condition holds, by the words after ibweave,
// or their first one. Commands check themselves what depends on their input, or is about
// two ways of saying the same.
var scopes = map[string][]scope{
	// Of every command that has such a flag, after the rows of its own.
	"": {
		{flags: "date", with: "policy", why: "waivers are in a policy", note: true},
		{flags: "host-group", with: "host-groups", why: "they say which hosts are in it"},
		{flags: "no-wrap", with: grids, note: true},
		{flags: "repair", with: "engine=xy", note: true},
	},
	"check": {
		{flags: "mtu", with: "vl-credits"},
		{flags: "verbose", not: "format=json", why: unsaid, note: true},
		{flags: "source", with: "format=sarif|codequality report", why: "other forms do not locate findings", note: true},
	},
	"compare": {
		{flags: "against", not: "bisections=0", why: "there is no bandwidth to compare"},
		{flags: "lids lmc roots", with: "engines", why: "tables of --lfts have their LIDs and paths", note: true},
		{flags: "percent samples svg", with: "damage"},
		{flags: "host-groups traffic", not: "damage", why: "figures are sums over damaged fabrics"},
		{flags: "fit", with: "traffic", why: "tables are fitted to its jobs"},
	},
	"compile": {
		{flags: "uniform-floor", with: "traffic"},
		{flags: "install-dir labels lean only path-sl zstd", not: "dry-run", why: "nothing is written", note: true},
		{flags: "host-groups", with: "without traffic", why: "these name them"},
		{flags: "adaptive", not: "groups", why: "no proof covers multicast packets together with all choices of ports"},
		{flags: "mcast", with: "groups"},
		{flags: "first-step rebalance", with: "previous"},
		{flags: "mcast-balance mft-capacity", with: "groups", note: true},
		{flags: "dims origin", with: grids + " lids=mesh groups", why: "only these look for a mesh", note: true},
		{flags: "roots", with: ordered, why: "other engines have no order of the switches", note: true},
	},
	"diff": {{flags: "verbose", not: "format=json", why: unsaid, note: true}},
	"drift": {
		{flags: "mkey retries timeout window", not: "live", why: "files are not asked", note: true},
		{flags: "summary verbose", not: "format=json", why: unsaid, note: true},
		{flags: "samples", not: "summary", why: "a line has no list", note: true},
	},
	"gen": {
		{flags: "management-hosts", with: "management-leaves", note: true},
		{flags: "rail-spines", with: "rails"},
		{flags: "seed", with: "drop-links fill names=mixed speed", why: random, note: true},
		{flags: "split", with: "labels"},
	},
	"gen irregular": {{flags: "split", with: "labels"}},
	"gen lattice":   {{flags: "split", with: "labels"}},
	"move":          {{flags: "engine", with: "topology", why: "DIR has its engine"}},
	"path":          {{flags: "all-ports", not: "all-from", why: "all ports of the host send then", note: true}},
	"rails":         {{flags: "host", not: "format=json", why: unsaid, note: true}},
	"traffic": {
		{flags: "lfts far plft engine traffic top host-groups format", not: "mix", why: "a mix is written for the hosts alone"},
		{flags: "by", with: "host-groups", why: "they say which hosts are in it"},
	},
	"slurm":    {{flags: "block-size", with: "format=yaml|json", why: "topology.conf has no blocks", note: true}},
	"rehearse": {{flags: "plugin traffic", with: "via=plugin"}},
	"report": {
		{flags: "counters host-groups traffic", with: "output cables", why: "pictures show routes"},
		{flags: "interactive", with: "output", why: "pictures take no clicks"},
		{flags: "compiler", with: "interactive"},
		{flags: "before seconds", with: "counters"},
		{flags: "dark", with: "svg png", why: "the page has a switch"},
		{flags: "view", with: "svg png", why: "the page has all views"},
		{flags: "max-entries", with: "output", why: "pictures have no tables", note: true},
		{flags: "title", with: "output svg png"},
	},
	"sim": {
		{flags: "state", not: "traffic", why: "only sweeps are kept"},
		{flags: "fit mcast scale top", with: "traffic", why: "they are about its jobs"},
		{flags: "host-groups", with: "traffic", why: "its jobs may name groups"},
		{flags: "buffer", not: "buffer-flits buffer-packets", why: "each lane has its own buffer then"},
		{flags: "choice choose-again", with: "adaptive far", not: "adaptive=hbf", why: "packets have no choice then"},
		{flags: "flit-bytes", not: "buffer-packets", why: "flits are of 64 bytes then, or of the packet", note: true},
		{flags: "png svg", with: "adaptive far engines vls traffic", why: "the picture compares routings"},
		{flags: "flows", with: "adaptive far", not: "trace traffic", why: "only adaptive tables tell flows apart"},
		{flags: "bytes hosts lengths multicast rank-file", not: "trace traffic", why: noTraces},
		{flags: "sls", not: "trace", why: noTraces},
		{flags: "rank-order", with: "pattern", why: "uniform traffic is the same in any order", note: true},
		{flags: "seed", not: "trace", why: noTraces, note: true},
		{flags: "pattern", not: "trace traffic multicast=1", why: "there is no unicast to choose receivers for"},
		{flags: "max-bytes", with: "lengths=geometric", note: true},
		{flags: "repeat sources", with: "multicast", why: "the share of messages that go to groups"},
		{flags: "order", with: "repeat"},
		{flags: "arrivals error max-queue min-messages warm-up", with: "load", why: "only open loop is measured so", note: true},
		{flags: "cycle shape", with: "arrivals=negative-binomial", note: true},
		{flags: "output-flits", with: "copying=wormhole|greedy-wormhole router"},
	},
	"whatif": {
		{flags: "seed", with: "sample", why: random, note: true},
		{flags: "top", not: "format=json", why: unsaid, note: true},
		{flags: "roots", with: ordered, why: "other engines have no order of the switches", note: true},
	},
}

// scopesOf lists the rows for a command, some of them of flags that it does not have.
func scopesOf(command string) []scope {
	rows, ok := scopes[command]
	if !ok {
		command, _, _ = strings.Cut(command, " ")
		rows = scopes[command]
	}
	return slices.Concat(rows, scopes[""])
}

// lists are flags that make a command list something and do nothing else.
var lists = map[string][]string{"check": {"rules", "explain"}, "compile": {"engines"}}

// besideLists are flags that scripts pass to each call: beside one that lists they are
// said, and not refused.
const besideLists = "date fail-on format install-dir kinds lenient node-name-map source strict"

// givenFlag says whether a flag was set, and not switched off or to its default value,
// which asks for nothing.
func givenFlag(f *pflag.Flag) bool {
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// holds returns true and the alternative of a condition that holds, in words, or false and all of them.
func holds(condition string, flags *pflag.FlagSet) (words string, ok bool) {
	var all []string
	for _, c := range strings.Fields(condition) {
		name, values, isValue := strings.Cut(c, "=")
		f, value := flags.Lookup(name), ""
		if f != nil {
			value = f.Value.String()
		}
		engine := value
		if e, err := compile.EngineByName(value); name == "engine" && err == nil {
			engine = e.Name()
		}
		switch {
		case f == nil:
		case !isValue && givenFlag(f):
			return "--" + name, true
		case isValue && slices.Contains(strings.Split(values, "|"), engine), name == "engine" && value == "": // one that is chosen
			return "--" + name + " " + value, true
		}
		all = append(all, strings.TrimSpace("--"+name+" "+strings.ReplaceAll(values, "|", ", ")))
	}
	return strings.Join(all, " or "), false
}

// withoutEffect says why a flag that is given has no effect, "" when it has one.
func withoutEffect(s *scope, flags *pflag.FlagSet) (reason string) {
	needed, ok := holds(s.with, flags)
	what, bad := holds(s.not, flags)
	switch {
	case s.with != "" && !ok:
		reason = "says nothing without " + needed
	case bad:
		reason = "says nothing with " + what
	default:
		return ""
	}
	if s.why != "" {
		reason += ": " + s.why
	}
	return reason
}

// checkScopes returns the flags without effect: wrong usage, or notes, lines for standard
// error. Those that an experiment file sets, which may have lines for other kinds of traffic, are in file.
func checkScopes(cmd *cobra.Command, file map[string]*yaml.Node) (notes []string, err error) {
	command := strings.TrimPrefix(cmd.CommandPath(), "ibweave ")
	flags := cmd.Flags()
	for _, list := range lists[command] {
		if !givenFlag(flags.Lookup(list)) {
			continue
		}
		var other error
		flags.Visit(func(f *pflag.Flag) {
			const reason = "--%s says nothing with --%s, which only lists"
			switch {
			case f.Name == list, f.Name == "log-level", f.Name == "log-format", f.Name == "color", !givenFlag(f), other != nil:
			case slices.Contains(strings.Fields(besideLists), f.Name):
				notes = append(notes, fmt.Sprintf(reason, f.Name, list))
			default:
				other = usagef(reason, f.Name, list)
			}
		})
		return notes, other
	}
	var wrong []error
	for _, s := range scopesOf(command) {
		for _, name := range strings.Fields(s.flags) {
			reason := withoutEffect(&s, flags)
			if reason == "" || file[name] != nil || !givenFlag(flags.Lookup(name)) {
				continue
			}
			if !s.note {
				wrong = append(wrong, usagef("--%s %s", name, reason))
				continue
			}
			notes = append(notes, fmt.Sprintf("--%s %s", name, reason))
		}
	}
	return notes, errors.Join(wrong...)
}

// sayNotes prints the notes of checkScopes, of a command line that makes sense, or returns its error.
func (a *app) sayNotes(notes []string, err error) error {
	if err == nil {
		for _, note := range notes {
			fmt.Fprintf(a.stderr, "ibweave: %s\n", note)
		}
	}
	return err
}
