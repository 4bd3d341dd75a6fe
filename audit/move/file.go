package move

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/text"
)

// isFile matches a file of edits, and neither a topology nor a cabling plan.
var isFile = regexp.MustCompile(`(?m)\A(?:[ \t]*(?:#.*)?\r?\n|---[ \t]*\r?\n)*(?:edits|steps)[ \t]*:`)

// IsFile returns true if a text is a file of edits, for Parse.
func IsFile(data []byte) bool { return isFile.Match(data) }

type edit struct {
	node  *yaml.Node
	words []string
}

type reader struct {
	*yamlfile.File
	b    *builder
	find *names.Finder
	job  *Job
	at   map[fabric.PortID]fabric.Cable // by both ports: cables after the edits so far
}

// Parse reads changes of a fabric from YAML. The key edits has a list of edits, for which Make
// finds the steps; or the key steps has a list of such lists, each of them a step. An edit is one
// of
//
//	unplug NODE:PORT
//	plug NODE:PORT NODE:PORT [RATE]       4xHDR; without it that of the fastest cable of either node
//	add switch|host NAME [GUID] PORTS     the GUID is made up where it is not known yet
//	remove NODE                           all of its cables are unplugged
//
// Names are as names.Find has them, in quotation marks if they have blanks;
// PORT is a number or a label. Each edit must be possible after those before
// it. Errors are *fabric.ParseError.
func Parse(name string, data []byte, old *fabric.Fabric) (*Job, error) {
	file, root, err := yamlfile.Parse(name, data, yamlfile.Limit, "a file of edits", "edits: and a list of edits, or steps: and a list of such lists")
	if err != nil {
		return nil, err
	}
	r := &reader{File: file}
	steps, isWritten, err := r.read(root)
	if err != nil {
		return nil, err
	}
	if err := r.addNodes(old, steps); err != nil {
		return nil, err
	}
	r.at = byPort(r.job.Old)
	states := [][]fabric.Cable{r.job.Old}
	for _, step := range steps {
		for _, e := range step {
			if err := r.apply(e.words[0], e.words[1:]); err != nil {
				return nil, r.Fail(e.node, "%w", err)
			}
		}
		// A cable is at both of its ends: list it once.
		states = append(states, slices.Compact(slices.SortedFunc(maps.Values(r.at), compareCables)))
	}
	r.job.New = states[len(states)-1]
	if isWritten {
		r.job.Steps = []Batch{}
		for i, now := range states[1:] {
			r.job.Steps = append(r.job.Steps, Batch{Unplug: without(states[i], now), Plug: without(now, states[i])})
		}
	}
	if err := r.job.assignLIDs(states[1:]...); err != nil {
		return nil, r.Fail(nil, "%w", err)
	}
	return r.job, nil
}

// read returns the edits by step; under the key edits as one step, with isWritten false.
func (r *reader) read(root *yaml.Node) (steps [][]edit, isWritten bool, err error) {
	readStep := func(n *yaml.Node) error {
		var step []edit
		err := r.List(n, "edits", func(x *yaml.Node) error {
			line, err := r.Text(x, "an edit, like unplug leaf03:37")
			if err != nil {
				return err
			}
			words, err := splitWords(line)
			if err != nil {
				return r.Fail(x, "%w", err)
			}
			step = append(step, edit{x, words})
			return nil
		})
		steps = append(steps, step)
		return err
	}
	err = r.Mapping(root, map[string]func(*yaml.Node) error{
		"edits": readStep,
		"steps": func(n *yaml.Node) error {
			isWritten = true
			return r.List(n, "lists of edits", readStep)
		},
	})
	if err == nil && len(root.Content) != 2 { // a key and its value
		err = r.Fail(root, "want either edits: or steps:")
	}
	return steps, isWritten, err
}

// A word is text without blanks and quotation marks, or text between quotation marks, or both
// joined. Between the marks \" and \\ stand for a mark and a backslash.
var (
	word    = regexp.MustCompile(`(?s)(?:[^ \t\n"]|"(?:[^"\\]|\\.)*")+`)
	quoted  = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"`)
	escaped = regexp.MustCompile(`(?s)\\(.)`)
)

func splitWords(text string) ([]string, error) {
	if strings.Trim(word.ReplaceAllString(text, ""), " \t\n") != "" {
		return nil, errors.New("a quotation mark without another")
	}
	words := word.FindAllString(text, -1)
	if len(words) == 0 {
		return nil, errors.New("want unplug, plug, add or remove")
	}
	for i := range words {
		words[i] = quoted.ReplaceAllStringFunc(words[i], func(text string) string {
			return escaped.ReplaceAllString(text[1:len(text)-1], "$1")
		})
	}
	return words, nil
}

// addNodes makes r.job with the nodes of the old fabric and those that edits add.
func (r *reader) addNodes(old *fabric.Fabric, steps [][]edit) (err error) {
	if r.b, err = newBuilder(old); err != nil {
		return r.Fail(nil, "%w", err)
	}
	var last fabric.GUID
	for _, e := range slices.Concat(steps...) {
		if e.words[0] != "add" {
			continue
		}
		node, err := parseNode(e.words)
		if err != nil {
			return r.Fail(e.node, "%w", err)
		}
		switch {
		case node.GUID == 0:
			last = r.b.freshGUID(last, node.NumPorts)
			node.GUID = last
		case r.b.taken[node.GUID]:
			return r.Fail(e.node, "GUID %s is that of another node", node.GUID)
		}
		if err := r.b.addNew(node); err != nil {
			return r.Fail(e.node, "%w", err)
		}
	}
	if r.job, err = r.b.finish(old, nil, nil); err != nil {
		return r.Fail(nil, "%w", err)
	}
	r.find = names.NewFinder(r.job.Nodes)
	return nil
}

// parseNode reads add switch|host NAME [GUID] PORTS.
func parseNode(words []string) (n fabric.Node, err error) {
	if len(words) < 4 || len(words) > 5 || words[1] != "switch" && words[1] != "host" {
		return n, errors.New("want add switch NAME [GUID] PORTS or add host NAME [GUID] PORTS")
	}
	n = fabric.Node{Type: fabric.CA, Description: words[2]}
	if words[1] == "switch" {
		n.Type = fabric.Switch
	}
	if len(words) == 5 {
		if n.GUID, err = fabric.ParseGUID(words[3]); err != nil {
			return n, err
		}
		if n.GUID == 0 {
			return n, errors.New("GUID 0 is no node's")
		}
	}
	ports, err := strconv.ParseUint(words[len(words)-1], 10, 8)
	if err != nil || ports < 1 || ports > uint64(fabric.MaxPortNum) {
		return n, fmt.Errorf("ports %q: want 1 to %d", words[len(words)-1], fabric.MaxPortNum)
	}
	n.NumPorts = fabric.PortNum(ports)
	return n, nil
}

// apply changes r.at by one edit.
func (r *reader) apply(verb string, args []string) error {
	f := r.job.Nodes
	switch {
	case verb == "add":
	case verb == "unplug" && len(args) == 1:
		p, err := r.find.Port(args[0])
		if err != nil {
			return err
		}
		if _, ok := r.at[p]; !ok {
			return fmt.Errorf("%s has no cable", f.PortName(p))
		}
		r.unplug(p)
	case verb == "plug" && (len(args) == 2 || len(args) == 3):
		return r.plug(args)
	case verb == "remove" && len(args) == 1:
		nodes, err := r.find.Find(args[0])
		if err != nil {
			return err
		}
		for _, n := range nodes {
			for num := range f.Node(n).NumPorts {
				r.unplug(f.Port(n, num+1))
			}
		}
	default:
		return fmt.Errorf("%q: want unplug NODE:PORT, plug NODE:PORT NODE:PORT [RATE], add switch|host NAME [GUID] PORTS or remove NODE", verb)
	}
	return nil
}

// plug adds the cable between two ports; a third argument is its rate.
func (r *reader) plug(args []string) error {
	f := r.job.Nodes
	a, err := r.find.Port(args[0])
	if err != nil {
		return err
	}
	b, err := r.find.Port(args[1])
	if err != nil {
		return err
	}
	c := ordered(fabric.Cable{A: a, B: b})
	if len(args) == 2 {
		c.Link = fastest(f, r.at, c)
	} else if link, ok := fabric.ParseLink(args[2]); ok {
		c.Link = link
	} else {
		return fmt.Errorf("rate %q: want one like 4xHDR", args[2])
	}
	for _, p := range [...]fabric.PortID{a, b} {
		if _, ok := r.at[p]; ok || a == b {
			return fmt.Errorf("%s has a cable already", f.PortName(p))
		}
	}
	r.at[a], r.at[b] = c, c
	return nil
}

func (r *reader) unplug(p fabric.PortID) {
	if c, ok := r.at[p]; ok {
		delete(r.at, c.A)
		delete(r.at, c.B)
	}
}

// quote writes a word so that splitWords reads it back.
func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, "\"\\ \t\n") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// Write returns the steps of a plan as a file for Parse.
func Write(job *Job, steps []Step) []byte {
	f := job.Nodes
	find := names.NewFinder(f)
	name := func(n fabric.NodeID) string {
		text := f.Name(n).Text
		nodes, err := find.Find(text)
		if err != nil || len(nodes) != 1 || nodes[0] != n {
			return f.Node(n).GUID.String()
		}
		return quote(text)
	}
	port := func(p fabric.PortID) string { return fmt.Sprintf("%s:%d", name(f.Owner(p)), f.Num(p)) }
	known := text.Each(f.Nodes(), func(n fabric.NodeID) bool {
		_, known := job.before.NodeByGUID(f.Node(n).GUID)
		return known
	})
	file := struct {
		Steps [][]string `yaml:"steps"`
	}{[][]string{}}
	for i := range steps {
		list := text.Each(steps[i].Batch.Unplug, func(c fabric.Cable) string { return "unplug " + port(c.A) })
		for _, c := range steps[i].Batch.Plug {
			for _, p := range [...]fabric.PortID{c.A, c.B} {
				n := f.Owner(p)
				if !known[n] {
					kind := "host"
					if f.IsSwitch(n) {
						kind = "switch"
					}
					list = append(list, fmt.Sprintf("add %s %s %s %d", kind, quote(f.Name(n).Text), f.Node(n).GUID, f.Node(n).NumPorts))
				}
				known[n] = true
			}
			list = append(list, strings.TrimRight("plug "+port(c.A)+" "+port(c.B)+" "+c.Link.String(), " "))
		}
		file.Steps = append(file.Steps, list)
	}
	data, err := yaml.Marshal(file)
	if err != nil {
		return nil // strings can always be written
	}
	return data
}
