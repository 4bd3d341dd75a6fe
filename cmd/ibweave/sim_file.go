package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric"
)

// tablesKey is what an experiment file has for the argument DIR.
const tablesKey = "tables"

// readExperiment sets the flags that an experiment file has and the command line has
// not. It returns the arguments.
func (a *app) readExperiment(in *simulation, args []string) ([]string, error) {
	data, err := a.readInput(in.file)
	if err != nil {
		return nil, err
	}
	settings, err := parseExperiment(in.file, data)
	if err != nil {
		return nil, err
	}
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
	for _, s := range settings {
		fail := func(format string, args ...any) error {
			return &fabric.ParseError{File: in.file, Line: s.line, Text: s.text, Err: fmt.Errorf(format, args...)}
		}
		flag := in.flags.Lookup(s.name)
		switch {
		case s.name != tablesKey && (flag == nil || ownFlags[s.name]):
			return nil, fail("%q: want tables, or the name of a flag that says what is simulated; sim --help lists them", s.name)
		case skip[s.name] || flag != nil && flag.Changed:
			continue
		}
		value := s.value
		if (s.name == tablesKey || fileFlags[s.name]) && !filepath.IsAbs(value) {
			if value == "" || value == "-" {
				return nil, fail("%s: want the name of a file", s.name)
			}
			if in.file != "-" {
				value = filepath.Join(filepath.Dir(in.file), value)
			}
		}
		if s.name == tablesKey {
			args = []string{value}
			continue
		}
		// Not by flags.Set, whose errors speak of the command line.
		if err := flag.Value.Set(value); err != nil {
			return nil, fail("%s: %w", s.name, err)
		}
		flag.Changed = true
		in.from[s.name] = sourceLine{s.line, s.text}
	}
	return args, nil
}

// setting is a line of an experiment file.
type setting struct {
	name, value string
	sourceLine
}

// yamlLine finds the line in what the YAML library says.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// maxExperiment bounds experiment files, in bytes: YAML takes a hundred times its size
// to read.
const maxExperiment = 1 << 20

// parseExperiment reads a mapping of names to scalars, or lists of them, in the
// order of the file. Errors are *fabric.ParseError.
func parseExperiment(name string, data []byte) ([]setting, error) {
	if len(data) > maxExperiment {
		return nil, &fabric.ParseError{File: name, Err: fmt.Errorf("%d bytes; want at most %d", len(data), maxExperiment)}
	}
	lines := strings.Split(string(data), "\n")
	fail := func(line int, format string, args ...any) error {
		line = min(line, len(lines)) // what is missing may be said to be behind the end
		e := &fabric.ParseError{File: name, Line: line, Err: fmt.Errorf(format, args...)}
		if line > 0 {
			e.Text = strings.TrimRight(lines[line-1], "\r")
		}
		return e
	}
	// YAML counts lines at more places than editors do.
	for i, line := range lines {
		if strings.ContainsAny(strings.TrimSuffix(line, "\r"), "\r\u0085\u2028\u2029") {
			return nil, fail(i+1, "a line that ends with something else than LF or CR LF")
		}
	}
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		line := 0
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1]) // digits
		}
		return nil, fail(line, "no YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, fail(0, "nothing in it; want the names of flags with their values, such as load: 0.5")
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, fail(0, "more than one document; want one")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fail(root.Line, "want the names of flags with their values, such as load: 0.5")
	}
	first := map[string]int{}
	var out []setting
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fail(key.Line, "want the name of a flag")
		}
		if line, twice := first[key.Value]; twice {
			return nil, fail(key.Line, "%s is in line %d already", key.Value, line)
		}
		first[key.Value] = key.Line
		items := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			items = value.Content
		}
		var texts []string
		for _, item := range items {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return nil, fail(max(item.Line, key.Line), "%s: want a value, or a list of values", key.Value)
			}
			texts = append(texts, item.Value)
		}
		if len(texts) == 0 {
			return nil, fail(key.Line, "%s: an empty list", key.Value)
		}
		s := setting{name: key.Value, value: strings.Join(texts, ",")}
		s.line = key.Line
		if key.Line <= len(lines) {
			s.text = strings.TrimRight(lines[key.Line-1], "\r")
		}
		out = append(out, s)
	}
	return out, nil
}
