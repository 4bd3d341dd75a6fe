// Package groups knows which hosts belong together: racks, partitions of a scheduler, or any
// grouping that an operator writes down. It sums up results by group. It makes no promise to other
// modules.
//
// The file is YAML. Each key is a grouping, and says which groups it has:
//
//	rack:                               # names and lists of names
//	  r01: n[001-016]
//	  r02: ["n[017-032]", login1]
//	row: re:^(row\d+)-                  # a group for each text that the parentheses find
//	use:
//	  storage: re:^(oss|mds)\d+         # all hosts with such names
//	  all: "@storage,@rack:r[01-02]"    # those of other groups, @rack:* of all of a grouping
//	partition: slurm:/etc/slurm/slurm.conf
//	host-regexp: ^(\S+)-ib\d            # how hosts are called, as in ibweave slurm
//
// The form is that of ClusterShell's YAML files, and more. A host may be in several groups, of one
// grouping too. File names are relative to the file that has them.
package groups

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/hostlist"
)

// File is groups as written.
type File struct {
	name      string
	host      *regexp.Regexp // of host-regexp, nil for the default
	groupings []grouping
}

// grouping is one key of a file.
type grouping struct {
	name   string
	groups []definition
	each   *regexp.Regexp // makes a group for each text that it finds; nil if groups are written
}

// definition is a group as written.
type definition struct {
	name     string
	file     string
	line     int // of file, from 1
	hosts    []string
	patterns []*regexp.Regexp
	others   []string // groups whose hosts are in it, too: GROUP, GROUPING:GROUP or GROUPING:*
}

// Prefixes of texts that are not names.
const (
	byPattern = "re:"
	bySlurm   = "slurm:"
)

// NoGroup is the name of the group of hosts that are in no other group of a grouping.
const NoGroup = "(none)"

// hostRegexp is the only key that is not a grouping.
const hostRegexp = "host-regexp"

// Read reads a file of groups. open reads it and the files that it names. Errors are those of open,
// or *fabric.ParseError with the line; the file is nil then.
func Read(name string, open func(name string) ([]byte, error)) (*File, error) {
	data, err := open(name)
	if err != nil {
		return nil, err
	}
	text, root, err := yamlfile.Parse(name, data, yamlfile.Limit, "a file of groups", `groupings, like rack: {r01: "n[001-016]"}`)
	if err != nil {
		return nil, err
	}
	r := &reader{File: text, name: name, open: open, file: &File{name: name}}
	err = r.Entries(root, `a mapping of groupings, like rack: {r01: "n[001-016]"}`, func(key, value *yaml.Node) error {
		if key.Value == hostRegexp {
			pattern, err := r.Text(value, "a regular expression")
			if err != nil {
				return err
			}
			r.file.host, err = r.pattern(value, pattern)
			return err
		}
		if err := r.checkName(key, ": "); err != nil {
			return err
		}
		g, err := r.grouping(key.Value, value)
		r.file.groupings = append(r.file.groupings, g)
		return err
	})
	if err == nil && len(r.file.groupings) == 0 {
		err = r.Fail(root, `no grouping; want one, like rack: {r01: "n[001-016]"}`)
	}
	if err == nil {
		err = r.joinOthers()
	}
	if err != nil {
		return nil, err
	}
	return r.file, nil
}

type reader struct {
	*yamlfile.File
	name  string
	open  func(string) ([]byte, error)
	file  *File
	names int // number of host names that were read
}

// checkName refuses a name of a grouping or group that is empty, NoGroup, or has a character of not.
func (r *reader) checkName(n *yaml.Node, not string) error {
	if n.Value == "" || n.Value == NoGroup || strings.ContainsAny(n.Value, not) {
		return r.Fail(n, "%q as a name; want one without blanks and colons", n.Value)
	}
	return nil
}

func (r *reader) pattern(n *yaml.Node, text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, r.Fail(n, "%w", err)
	}
	return re, nil
}

const wantGroups = "groups with their hosts, re: and a regular expression, or slurm:FILE"

// grouping reads the value of key name: groups with their hosts, re:PATTERN or slurm:FILE.
func (r *reader) grouping(name string, n *yaml.Node) (g grouping, err error) {
	g.name = name
	if n.Kind == yaml.ScalarNode {
		kind, rest, _ := strings.Cut(n.Value, ":")
		switch kind + ":" {
		case byPattern:
			g.each, err = r.pattern(n, rest)
		case bySlurm:
			g.groups, err = r.slurm(n, rest)
		default:
			err = r.Fail(n, "%s; want %s", yamlfile.KindName(n), wantGroups)
		}
		return g, err
	}
	err = r.Entries(n, wantGroups, func(key, value *yaml.Node) error {
		if err := r.checkName(key, ""); err != nil {
			return err
		}
		d := definition{name: key.Value, file: r.name, line: key.Line}
		items := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			items = value.Content
		}
		for _, item := range items {
			if err := r.members(&d, item); err != nil {
				return err
			}
		}
		g.groups = append(g.groups, d)
		return nil
	})
	return g, err
}

// members adds the hosts of one text to a group.
func (r *reader) members(d *definition, n *yaml.Node) error {
	text, err := r.Text(n, "names of hosts, or re: and a regular expression")
	if err != nil {
		return err
	}
	if pattern, is := strings.CutPrefix(text, byPattern); is {
		re, err := r.pattern(n, pattern)
		d.patterns = append(d.patterns, re)
		return err
	}
	if err := r.addHosts(d, text); err != nil {
		return r.Fail(n, "%w", err)
	}
	return nil
}

// addHosts adds the hosts of a list to a group; a name after @ is a group.
func (r *reader) addHosts(d *definition, list string) error {
	if strings.ContainsAny(list, "!&^") {
		return fmt.Errorf("%q has an operator of ClusterShell; want names of hosts with commas between them", list)
	}
	names, err := r.expand(list)
	for _, name := range names {
		switch group, is := strings.CutPrefix(name, "@"); {
		case is:
			d.others = append(d.others, group)
		case strings.Contains(name, ":"):
			return fmt.Errorf("%q is the name of no host; want names, lists like n[001-016], or @GROUPING:GROUP", name)
		default:
			d.hosts = append(d.hosts, name)
		}
	}
	return err
}

// joinOthers adds to each group the hosts of the groups that it names, after it has joined these.
func (r *reader) joinOthers() error {
	byName := make(map[string][]*definition) // by GROUPING:GROUP and GROUPING:*
	groupings := make(map[*definition]string)
	var all []*definition
	for i := range r.file.groupings {
		g := &r.file.groupings[i]
		for k := range g.groups {
			d := &g.groups[k]
			all, groupings[d] = append(all, d), g.name
			byName[g.name+":"+d.name] = []*definition{d}
			byName[g.name+":*"] = append(byName[g.name+":*"], d)
		}
	}
	joined := make(map[*definition]bool) // false while a group is being joined
	var join func(d *definition) error
	join = func(d *definition) error {
		if done, seen := joined[d]; done {
			return nil
		} else if seen {
			return lineError(d.file, d.line, "", fmt.Errorf("%s %s has itself among its groups", groupings[d], d.name))
		}
		joined[d] = false
		for _, name := range d.others {
			if !strings.Contains(name, ":") {
				name = groupings[d] + ":" + name
			}
			if byName[name] == nil {
				return lineError(d.file, d.line, "", fmt.Errorf("no group is written that is called @%s", name))
			}
			for _, other := range byName[name] {
				if other == d && strings.HasSuffix(name, ":*") {
					continue
				}
				if err := join(other); err != nil {
					return err
				}
				if r.names += len(other.hosts) + len(other.patterns); r.names > hostlist.MaxNames {
					return lineError(d.file, d.line, "", errTooMany)
				}
				d.hosts, d.patterns = append(d.hosts, other.hosts...), append(d.patterns, other.patterns...)
			}
		}
		joined[d] = true
		return nil
	}
	for _, d := range all {
		if err := join(d); err != nil {
			return err
		}
	}
	return nil
}

// maxFile bounds the size of a file that the YAML file names, bytes.
const maxFile = 64 << 20

func (r *reader) load(name string) ([]byte, error) {
	data, err := r.open(name)
	if err == nil && len(data) > maxFile {
		err = lineError(name, 0, "", fmt.Errorf("%d bytes; want at most %d", len(data), maxFile))
	}
	return data, err
}

// expand lists the hosts of a list with commas or blanks. All lists together may have at most
// hostlist.MaxNames.
func (r *reader) expand(list string) ([]string, error) {
	hosts, err := hostlist.Expand(strings.Join(strings.Fields(list), ","))
	if err != nil {
		return nil, err
	}
	if r.names += len(hosts); r.names > hostlist.MaxNames {
		return nil, errTooMany
	}
	return hosts, nil
}

var errTooMany = fmt.Errorf("more than %d names in all lists", hostlist.MaxNames)

// eachLine visits the lines with more than a comment; line counts from 1.
func eachLine(data []byte, visit func(line int, text string) error) error {
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text, _, _ = strings.Cut(text, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := visit(line, text); err != nil {
			return err
		}
	}
	return nil
}

// lineError adds file and line to an error; nil for nil.
func lineError(name string, line int, text string, err error) error {
	if err == nil {
		return nil
	}
	return &fabric.ParseError{File: name, Line: line, Text: text, Err: err}
}
