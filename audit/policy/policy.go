// Package policy checks a fabric and its tables against what operators write
// down: the intended topology, required links, limits and properties of the
// routing, the severity of each rule, and which findings are excused until
// when. It makes no promise to other modules.
//
// The file is YAML. All keys are optional, unknown ones are errors:
//
//	topology:
//	  expected: cabling.ibnetdiscover   # or
//	  generated: fattree radix 40 levels 2
//	  allow-missing:
//	    cables: 4                       # up to 4 missing cables are notes
//	    at: ["leaf 3[12]", 're:^spine'] # and these, whatever their number
//	links:
//	  width: 4
//	  speed: NDR
//	  hosts: {width: 4, speed: HDR}     # links of hosts, when they differ
//	routing:
//	  max-hops: 3                       # switches passed
//	  max-imbalance: 1.5                # most loaded link / mean
//	  require: [minimal, updown, xy]
//	  roots: ["0x0000000000200000"]     # for updown: GUIDs or descriptions
//	severities:
//	  port-down: off                    # or note, warning, error
//	kinds: ["service=nvme*"]            # what nodes are for, as --kinds has it
//	waivers:
//	  - rule: missing-cable             # or fingerprint: 0123456789abcdef
//	    at: "leaf 7[3]"
//	    until: 2026-12-31
//	    reason: RMA 4711
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/verify"
)

// The properties that a routing can be required to have.
const (
	Minimal = "minimal"
	UpDown  = "updown"
	XY      = "xy"
)

// Policy is the requirements of an operator. The zero value requires nothing.
type Policy struct {
	// Expected is the name of the file with the expected topology, as written; ""
	// for none.
	Expected string
	// Meant is the shape that the fabric should have, nil for any.
	Meant *cabling.Meant
	// MayMiss is how many cables may be missing, and MissAt where any may be missing.
	MayMiss int
	MissAt  []Place
	// Between is the least width and speed of links between switches, Hosts that of links to hosts;
	// 0 for any.
	Between, Hosts fabric.Link
	MaxHops        int      // switches passed; 0 for any
	MaxImbalance   float64  // routes on the most loaded link over the mean; 0 for any
	Require        []string // properties
	Roots          []Place
	// Severities has severities by rule; verify.Clean means to leave out the rule's findings.
	Severities map[string]verify.Severity
	Waivers    []Waiver
	Kinds      []fabric.KindRule // for fabric.Fabric.WithKinds
}

// Waiver excuses findings for some time.
type Waiver struct {
	Line        int       // of the file
	Rule        string    // "" for any, with a fingerprint
	Fingerprint string    // "" for any
	At          []Place   // one, or none for anywhere
	Until       time.Time // the last day in force, at 0:00 UTC
	Reason      string
}

// Place names a switch or an adapter, and a port of it.
type Place struct {
	text    string
	guid    fabric.GUID // 0 for none
	name    string
	pattern *regexp.Regexp
	port    fabric.PortNum // 0 for any
}

// Has returns true if the place matches a node and port; for the whole node port is 0.
func (p Place) Has(guid fabric.GUID, name string, port fabric.PortNum) bool {
	switch {
	case p.port != 0 && p.port != port:
		return false
	case p.guid != 0:
		return p.guid == guid
	case p.pattern != nil:
		return p.pattern.MatchString(name)
	}
	return p.name == name
}

// finding returns true if a finding is about the place.
func (p Place) finding(x *verify.Finding) bool {
	return p.guid != 0 && p.port == 0 && p.guid == x.Switch ||
		slices.ContainsFunc(x.Ports, func(e verify.Endpoint) bool { return p.Has(e.Node, e.Name.Text, e.Port) }) ||
		slices.ContainsFunc(x.Witness, func(h verify.Hop) bool { return p.Has(h.Switch, h.Name.Text, h.Port) })
}

var (
	atPort   = regexp.MustCompile(`^(.*)\[(\d{1,3})\]$`)
	longGUID = regexp.MustCompile(`^0[xX][0-9a-fA-F]{1,16}$`)
)

// parsePlace reads a GUID, a description or re: and a regular expression, each with or without
// [port] after it.
func parsePlace(s string) (Place, error) {
	p := Place{text: s}
	if m := atPort.FindStringSubmatch(s); m != nil && !strings.HasPrefix(s, "re:") {
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 1 || n > int(fabric.MaxPortNum) {
			return p, fmt.Errorf("port %s of %q: want 1 to %d", m[2], s, fabric.MaxPortNum)
		}
		s, p.port = m[1], fabric.PortNum(n)
	}
	switch {
	case s == "":
		return p, errors.New(`no node; want a GUID, a description or re: and a regular expression, like "leaf 3[12]"`)
	case strings.HasPrefix(s, "re:"):
		var err error
		p.pattern, err = regexp.Compile(s[len("re:"):])
		return p, err
	case longGUID.MatchString(s):
		g, err := fabric.ParseGUID(s)
		if err == nil && g == 0 {
			err = fmt.Errorf("%s is no GUID of a node", s)
		}
		p.guid = g
		return p, err
	default:
		p.name = s
	}
	return p, nil
}

// Parse reads a policy; name is that of its file, for errors. Errors are *fabric.ParseError with the
// line, and a nil policy.
func Parse(name string, data []byte) (*Policy, error) {
	file, root, err := yamlfile.Parse(name, data, yamlfile.Limit, "a policy", "at least one of topology:, links:, routing:, severities:, kinds: or waivers:")
	if err != nil {
		return nil, err
	}
	r := &reader{file}
	p := &Policy{}
	err = r.Mapping(root, keys{
		"topology":   func(n *yaml.Node) error { return r.topology(p, n) },
		"links":      func(n *yaml.Node) error { return r.links(p, n) },
		"routing":    func(n *yaml.Node) error { return r.routing(p, n) },
		"severities": func(n *yaml.Node) error { return r.severities(p, n) },
		"kinds":      func(n *yaml.Node) error { return r.kinds(p, n) },
		"waivers":    func(n *yaml.Node) error { return r.waivers(p, n) },
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// keys are functions that read the values of a mapping, by key.
type keys = map[string]func(*yaml.Node) error

type reader struct{ *yamlfile.File }

// text reads a scalar that is not empty. what describes it in errors.
func (r *reader) text(n *yaml.Node, what string, to *string) (err error) {
	*to, err = r.Text(n, what)
	return err
}

func (r *reader) number(n *yaml.Node, least, most int, to *int) (err error) {
	*to, err = r.Number(n, least, most)
	return err
}

// place reads a Place, and appends it to a list.
func (r *reader) place(n *yaml.Node, list *[]Place) error {
	s, err := r.Text(n, `a node, like "leaf 3" or "0x0002c90300000001[12]"`)
	if err != nil {
		return err
	}
	p, err := parsePlace(s)
	if err != nil {
		return r.Fail(n, "%w", err)
	}
	*list = append(*list, p)
	return nil
}

func (r *reader) topology(p *Policy, n *yaml.Node) error {
	return r.Mapping(n, keys{
		"expected": func(v *yaml.Node) error {
			if p.Meant != nil {
				return r.Fail(v, "expected: and generated: together; want one")
			}
			return r.text(v, "the name of a topology file", &p.Expected)
		},
		"generated": func(v *yaml.Node) error {
			if p.Expected != "" {
				return r.Fail(v, "expected: and generated: together; want one")
			}
			p.Meant = &cabling.Meant{}
			err := r.text(v, "a generator line, like fattree radix 40 levels 2", &p.Meant.Name)
			if err != nil {
				return err
			}
			if p.Meant.Full, err = Generate(p.Meant.Name); err != nil {
				err = r.Fail(v, "%w", err)
			}
			return err
		},
		"allow-missing": func(v *yaml.Node) error {
			return r.Mapping(v, keys{
				"cables": func(v *yaml.Node) error { return r.number(v, 0, math.MaxInt32, &p.MayMiss) },
				"at": func(v *yaml.Node) error {
					return r.List(v, "nodes or ports", func(v *yaml.Node) error { return r.place(v, &p.MissAt) })
				},
			})
		},
	})
}

// link adds the keys of a required link.
func (r *reader) link(to *fabric.Link, more keys) keys {
	more["width"] = func(v *yaml.Node) error {
		switch s := strings.TrimSuffix(v.Value, "x"); s {
		case "1", "2", "4", "8", "12":
			n, err := strconv.ParseUint(s, 10, 8)
			to.Width = uint8(n)
			return err
		}
		return r.Fail(v, "%s; want a width: 1, 2, 4, 8 or 12", yamlfile.KindName(v))
	}
	more["speed"] = func(v *yaml.Node) error {
		speed, ok := fabric.ParseSpeed(strings.ToUpper(v.Value))
		if !ok {
			return r.Fail(v, "%s; want a speed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR", yamlfile.KindName(v))
		}
		to.Speed = speed
		return nil
	}
	return more
}

func (r *reader) links(p *Policy, n *yaml.Node) error {
	var all, hosts fabric.Link
	err := r.Mapping(n, r.link(&all, keys{
		"hosts": func(v *yaml.Node) error { return r.Mapping(v, r.link(&hosts, keys{})) },
	}))
	p.Between, p.Hosts = all, fabric.Link{Width: cmp.Or(hosts.Width, all.Width), Speed: cmp.Or(hosts.Speed, all.Speed)}
	return err
}

func (r *reader) routing(p *Policy, n *yaml.Node) error {
	return r.Mapping(n, keys{
		"max-hops": func(v *yaml.Node) error { return r.number(v, 1, maxHops, &p.MaxHops) },
		"max-imbalance": func(v *yaml.Node) error {
			x, err := strconv.ParseFloat(v.Value, 64)
			if v.Kind != yaml.ScalarNode || err != nil || !(x >= 1 && x <= maxImbalance) {
				return r.Fail(v, "%s; want a number from 1 to %.0f: routes on the most loaded link over the mean", yamlfile.KindName(v), maxImbalance)
			}
			p.MaxImbalance = x
			return nil
		},
		"require": func(v *yaml.Node) error {
			return r.List(v, "properties", func(v *yaml.Node) error {
				if v.Kind != yaml.ScalarNode || !slices.Contains([]string{Minimal, UpDown, XY}, v.Value) {
					return r.Fail(v, "%s; want minimal, updown or xy", yamlfile.KindName(v))
				}
				if !slices.Contains(p.Require, v.Value) {
					p.Require = append(p.Require, v.Value)
				}
				return nil
			})
		},
		"roots": func(v *yaml.Node) error {
			return r.List(v, "switches", func(v *yaml.Node) error {
				err := r.place(v, &p.Roots)
				if err == nil && p.Roots[len(p.Roots)-1].port != 0 {
					err = r.Fail(v, "%s is a port; want a switch", yamlfile.KindName(v))
				}
				return err
			})
		},
	})
}

func (r *reader) rule(n *yaml.Node, to *string) error {
	if _, ok := RuleByName(n.Value); !ok || n.Kind != yaml.ScalarNode {
		return r.Fail(n, "%s is no rule; ibweave check --rules lists them", yamlfile.KindName(n))
	}
	*to = n.Value
	return nil
}

// maxHops bounds the limit of switches: a directed route has 63 hops (IBA 14.2.2).
const maxHops = 64

// maxImbalance is far above what routes to 49,151 LIDs can have.
const maxImbalance = 1e6

// Off is the severity of rules whose findings are left out.
const Off = "off"

func (r *reader) severities(p *Policy, n *yaml.Node) error {
	p.Severities = make(map[string]verify.Severity)
	return r.Entries(n, "a mapping of rules to severities", func(key, value *yaml.Node) error {
		var rule string
		if err := r.rule(key, &rule); err != nil {
			return err
		}
		var s verify.Severity
		if value.Value != Off && (s.UnmarshalText([]byte(value.Value)) != nil || s == verify.Clean) || value.Kind != yaml.ScalarNode {
			return r.Fail(value, "%s; want off, note, warning or error", yamlfile.KindName(value))
		}
		p.Severities[rule] = s
		return nil
	})
}

func (r *reader) kinds(p *Policy, n *yaml.Node) error {
	return r.List(n, "kinds of nodes", func(item *yaml.Node) error {
		s, err := r.Text(item, "KIND=PATTERN")
		if err != nil {
			return err
		}
		rules, err := fabric.ParseKindRules(s)
		if err != nil {
			return r.Fail(item, "%w", err)
		}
		p.Kinds = append(p.Kinds, rules...)
		return nil
	})
}

var fingerprint = regexp.MustCompile(`^[0-9a-f]{16}$`)

func (r *reader) waivers(p *Policy, n *yaml.Node) error {
	return r.List(n, "waivers", func(item *yaml.Node) error {
		w, hasEnd := Waiver{Line: item.Line}, false
		err := r.Mapping(item, keys{
			"rule": func(v *yaml.Node) error { return r.rule(v, &w.Rule) },
			"fingerprint": func(v *yaml.Node) error {
				if v.Kind != yaml.ScalarNode || !fingerprint.MatchString(v.Value) {
					return r.Fail(v, "%s; want the 16 hexadecimal digits of a finding's fingerprint", yamlfile.KindName(v))
				}
				w.Fingerprint = v.Value
				return nil
			},
			"at": func(v *yaml.Node) error { return r.place(v, &w.At) },
			"until": func(v *yaml.Node) (err error) {
				hasEnd = true
				if w.Until, err = time.Parse(time.DateOnly, v.Value); err != nil || v.Kind != yaml.ScalarNode {
					return r.Fail(v, "%s; want the last day of the waiver, like 2026-12-31", yamlfile.KindName(v))
				}
				return nil
			},
			"reason": func(v *yaml.Node) error { return r.text(v, "a reason", &w.Reason) },
		})
		switch {
		case err != nil:
			return err
		case w.Rule == "" && w.Fingerprint == "":
			return r.Fail(item, "a waiver of everything; want rule: or fingerprint:")
		case !hasEnd:
			return r.Fail(item, "a waiver without an end; want until:, like 2026-12-31")
		case w.Reason == "":
			return r.Fail(item, "a waiver without a reason; want reason:")
		}
		p.Waivers = append(p.Waivers, w)
		return nil
	})
}
