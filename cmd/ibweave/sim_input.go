package main

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/yamlfile"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sim"
)

// tablesKey is the key of an experiment file for the argument DIR.
const tablesKey = "tables"

// readExperiment sets the flags that an experiment file has and the command line has
// not. It returns the arguments. Errors are *fabric.ParseError.
func (a *app) readExperiment(in *simulation, args []string) ([]string, error) {
	const want = "the names of flags with their values, such as load: 0.5"
	data, err := a.readInput(in.file)
	if err != nil {
		return nil, err
	}
	r, root, err := yamlfile.Parse(in.file, data, yamlfile.Limit, "an experiment", want)
	if err != nil {
		return nil, err
	}
	in.settings = r
	skip := map[string]bool{}
	for _, choice := range choices {
		if slices.ContainsFunc(choice, func(name string) bool {
			return in.flags.Changed(name) || name == tablesKey && len(args) > 0
		}) {
			for _, name := range choice {
				skip[name] = true
			}
		}
	}
	err = r.Entries(root, want, func(key, value *yaml.Node) error {
		name := key.Value
		flag := in.flags.Lookup(name)
		switch {
		case name != tablesKey && (flag == nil || ownFlags[name]):
			return r.Fail(key, "%q: want tables, or the name of a flag that says what is simulated; sim --help lists them", name)
		case skip[name] || flag != nil && flag.Changed:
			return nil
		}
		text, err := settingText(r, name, value)
		if err != nil {
			return err
		}
		if name == tablesKey || fileFlags[name] {
			if text == "-" {
				return r.Fail(key, "%s: want the name of a file", name)
			}
			text = yamlfile.Beside(in.file, text)
		}
		if name == tablesKey {
			args = []string{text}
			return nil
		}
		// Not by flags.Set, whose errors speak of the command line.
		if err := flag.Value.Set(text); err != nil {
			return r.Fail(key, "%s: %w", name, err)
		}
		if given, err := cli.WrongValue(flag); err != nil {
			return r.Fail(key, "%s: %q: %w", name, given, err)
		}
		flag.Changed = true
		in.from[name] = key
		return nil
	})
	return args, err
}

// settingText returns a value as the command line has it, a list with commas.
func settingText(r *yamlfile.File, name string, value *yaml.Node) (string, error) {
	items := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode && len(value.Content) > 0 {
		items = value.Content
	}
	var texts []string
	for _, item := range items {
		text, err := r.Text(item, "a value of "+name+", or a list of values")
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

// ranks says which hosts take part, and in which order.
type ranks struct {
	hosts string // names, "" for all
	file  string // with names, "" for none
	order sim.RankOrder
}

// text says how many hosts take part, where these are not all.
func (r *ranks) text(n int) string {
	if r.hosts == "" && r.file == "" {
		return ""
	}
	return " of " + text.CountGrouped(n, "rank", "ranks")
}

// findRanks lists the ports that take part in the order of their ranks.
func (a *app) findRanks(in *simulation, f *fabric.Fabric) (list []fabric.PortID, err error) {
	ranks := experiment.NewRanks(f)
	switch {
	case in.ranks.file != "":
		if err = a.readRanks(in, ranks.Add); err == nil && len(ranks.Ports) == 0 {
			err = inputf("%s names no host", in.ranks.file)
		}
	case in.ranks.hosts != "":
		if err = ranks.Add(in.ranks.hosts); err != nil {
			err = in.wrong("hosts", "%w", err)
		}
	default:
		ranks.AddAll()
	}
	in.ranks.order(f, ranks.Ports)
	return ranks.Ports, err
}

// readRanks reads names of hosts, lists of them on each line, and adds them.
func (a *app) readRanks(in *simulation, add func(hosts string) error) error {
	data, err := a.reader(&in.audit).ReadFile(in.ranks.file)
	if err != nil {
		return err
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		said := strings.TrimRight(string(line), "\r\n")
		hosts, _, _ := strings.Cut(said, "#")
		if hosts = strings.TrimSpace(hosts); hosts == "" {
			continue
		}
		if err := add(hosts); err != nil {
			return &fabric.ParseError{File: in.ranks.file, Line: number, Text: said, Err: err}
		}
	}
	return nil
}
