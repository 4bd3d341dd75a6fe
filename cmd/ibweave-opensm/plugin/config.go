package plugin

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
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// The values of verify.
const (
	VerifyError = "error" // tables with errors are not installed
	VerifyWarn  = "warn"  // they are, and reported
)

// The values of vlarb.
const (
	ArbitrationOpenSM = "opensm" // OpenSM's options decide
	ArbitrationEqual  = "equal"  // all VLs have equal weights
)

// The values of multicast.scheme beyond the names of schemes.
const (
	SchemeAuto   = "auto"   // what suits the engine
	SchemeOpenSM = "opensm" // OpenSM makes the trees itself
)

// Config is the configuration file. Its keys have the names of the flags of
// ibweave compile where there are such.
type Config struct {
	File string // its name, "" for none

	Roots   []fabric.GUID
	Origin  fabric.GUID
	Dims    []int
	NoWrap  bool
	Repair  bool
	VLs     int
	SL2VL   string
	Verify  string
	VLArb   string
	Timeout time.Duration
	// Labels is a topology text with the labels of ports, for the logs; "" for none.
	Labels string
	// Incremental keeps of the last tables what a change of the subnet leaves. Then
	// tables depend on what the subnet was like before.
	Incremental bool
	// Rebalance is lft.Options.Rebalance.
	Rebalance float64
	// Traffic is a file of what jobs send, "" for none; UniformFloor is compile.Options.UniformFloor.
	Traffic      string
	UniformFloor float64
	Multicast    MulticastConfig
	Log          LogConfig
	// Metrics is a file for metrics of Prometheus, "" for none.
	Metrics string
}

// MulticastConfig is the part of the configuration about multicast.
type MulticastConfig struct {
	Scheme string
	// Groups is the groups.json of a compiled directory, "" for none.
	Groups string
	// Balance divides trees over links. Then the tree of a group depends on who
	// joined before: another OpenSM, or this one after a restart, makes others.
	Balance bool
}

// LogConfig is the part of the configuration about our log.
type LogConfig struct {
	File   string // "" for the default
	Level  zapcore.Level
	Format string // console or json
}

// defaults is the configuration without a file.
func defaults() *Config {
	return &Config{
		Verify: VerifyError, VLArb: ArbitrationOpenSM, Timeout: 10 * time.Minute, Incremental: true, Rebalance: lft.DefaultRebalance, UniformFloor: lft.DefaultUniformFloor,
		Multicast: MulticastConfig{Scheme: SchemeAuto},
		Log:       LogConfig{Level: zapcore.InfoLevel, Format: "console"},
	}
}

// where is the file's name, for messages.
func (c *Config) where() string {
	if c.File == "" {
		return "a configuration file"
	}
	return c.File
}

// readConfig reads event_plugin_options and the file that they name.
func readConfig(options string) (*Config, error) {
	flags := pflag.NewFlagSet("event_plugin_options", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	file := flags.String("config", "", "configuration `FILE`, YAML")
	words := strings.Fields(unquote(options))
	if len(words) == 1 && words[0] == "(null)" { // as opensm -c writes it
		words = nil
	}
	err := flags.Parse(words)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	if err != nil {
		return nil, fmt.Errorf("event_plugin_options %q: %w; want --config FILE", options, err)
	}
	if *file == "" {
		return defaults(), nil
	}
	if !filepath.IsAbs(*file) {
		return nil, fmt.Errorf("event_plugin_options --config %s: want an absolute path, since OpenSM runs as a daemon in another folder", *file)
	}
	in := background[*Config]{file: *file}
	return in.get(startTimeout, func() (*Config, error) {
		data, err := readFile(*file, maxConfig, configTimes)
		if err != nil {
			return nil, err
		}
		return ParseConfig(*file, data)
	})
}

// unquote takes quotes away that OpenSM leaves around a value.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// key is a key of a mapping, and what its value does.
type key struct {
	name string
	set  func(*yaml.Node) error
}

// reader reads one file.
type reader struct {
	name  string
	lines [][]byte
}

// yamlLine is how the YAML library says where an error is.
var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?line (\d+): `)

// ParseConfig reads a configuration file. Errors are *fabric.ParseError: YAML
// that is none, keys that there are not or that come twice, values that are not
// of the kind.
func ParseConfig(name string, data []byte) (*Config, error) {
	r := &reader{name: name, lines: bytes.Split(data, []byte("\n"))}
	c := defaults()
	c.File = name
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF): // nothing but comments
		return c, nil
	case err != nil:
		return nil, r.syntax(err)
	}
	var more yaml.Node
	switch err := d.Decode(&more); {
	case err == nil:
		return nil, r.fail(&more, errors.New("a second document: want one"))
	case !errors.Is(err, io.EOF):
		return nil, r.syntax(err)
	}
	top := []key{
		{"roots", func(n *yaml.Node) error { return r.guids(n, &c.Roots) }},
		{"origin", func(n *yaml.Node) error { return r.guid(n, &c.Origin) }},
		{"dims", func(n *yaml.Node) error { return r.dims(n, &c.Dims) }},
		{"no-wrap", func(n *yaml.Node) error { return r.boolean(n, &c.NoWrap) }},
		{"repair", func(n *yaml.Node) error { return r.boolean(n, &c.Repair) }},
		{"vls", func(n *yaml.Node) error { return r.vls(n, &c.VLs) }},
		{"sl2vl", func(n *yaml.Node) error { return r.oneOf(n, &c.SL2VL, compile.SL2VLSchemes...) }},
		{"verify", func(n *yaml.Node) error { return r.oneOf(n, &c.Verify, VerifyError, VerifyWarn) }},
		{"vlarb", func(n *yaml.Node) error { return r.oneOf(n, &c.VLArb, ArbitrationOpenSM, ArbitrationEqual) }},
		{"timeout", func(n *yaml.Node) error { return r.duration(n, &c.Timeout) }},
		{"labels", func(n *yaml.Node) error { return r.path(n, &c.Labels) }},
		{"incremental", func(n *yaml.Node) error { return r.boolean(n, &c.Incremental) }},
		{"rebalance", func(n *yaml.Node) error { return r.factor(n, &c.Rebalance) }},
		{"traffic", func(n *yaml.Node) error { return r.path(n, &c.Traffic) }},
		{"uniform-floor", func(n *yaml.Node) error { return r.factor(n, &c.UniformFloor) }},
		{"multicast", func(n *yaml.Node) error {
			return r.mapping(n, []key{
				{"scheme", func(n *yaml.Node) error { return r.oneOf(n, &c.Multicast.Scheme, multicastSchemes()...) }},
				{"groups", func(n *yaml.Node) error { return r.path(n, &c.Multicast.Groups) }},
				{"balance", func(n *yaml.Node) error { return r.boolean(n, &c.Multicast.Balance) }},
			})
		}},
		{"log", func(n *yaml.Node) error {
			return r.mapping(n, []key{
				{"file", func(n *yaml.Node) error { return r.path(n, &c.Log.File) }},
				{"level", func(n *yaml.Node) error { return r.level(n, &c.Log.Level) }},
				{"format", func(n *yaml.Node) error { return r.oneOf(n, &c.Log.Format, "console", "json") }},
			})
		}},
		{"metrics", func(n *yaml.Node) error {
			return r.mapping(n, []key{{"file", func(n *yaml.Node) error { return r.path(n, &c.Metrics) }}})
		}},
	}
	if err := r.mapping(doc.Content[0], top); err != nil {
		return nil, err
	}
	return c, nil
}

// syntax is the error for text that is not YAML.
func (r *reader) syntax(err error) error {
	line, message := 0, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = err.Error()[len(m[0]):]
	}
	return r.at(line, 0, errors.New(message))
}

// fail is the error for a value.
func (r *reader) fail(n *yaml.Node, err error) error { return r.at(n.Line, max(0, n.Column-1), err) }

func (r *reader) at(line, column int, err error) error {
	e := &fabric.ParseError{File: r.name, Line: line, Column: column, Err: err}
	if line > 0 && line <= len(r.lines) {
		e.Text = string(bytes.TrimRight(r.lines[line-1], "\r"))
	}
	return e
}

// what says in words what a node is.
func what(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return strconv.Quote(n.Value)
}

// mapping reads a mapping with these keys. An empty value has none.
func (r *reader) mapping(n *yaml.Node, keys []key) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	if n.Kind != yaml.MappingNode {
		return r.fail(n, fmt.Errorf("%s: want a mapping with %s", what(n), strings.Join(names, ", ")))
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := slices.Index(names, k.Value)
		if k.Kind != yaml.ScalarNode || at < 0 {
			return r.fail(k, fmt.Errorf("no key %s: want one of %s", what(k), strings.Join(names, ", ")))
		}
		if line, twice := seen[k.Value]; twice {
			return r.fail(k, fmt.Errorf("key %q is in line %d already", k.Value, line))
		}
		seen[k.Value] = k.Line
		if err := keys[at].set(v); err != nil {
			return err
		}
	}
	return nil
}

// scalar is the text of a value.
func (r *reader) scalar(n *yaml.Node, want string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		what := what(n)
		if n.Tag == "!!null" {
			what = "no value"
		}
		return "", r.fail(n, fmt.Errorf("%s: want %s", what, want))
	}
	return n.Value, nil
}

// value reads a scalar and sets to, where parse takes the text; want says what it takes.
func value[T any](r *reader, n *yaml.Node, to *T, want string, parse func(string) (T, bool)) error {
	s, err := r.scalar(n, want)
	if err != nil {
		return err
	}
	v, ok := parse(s)
	if !ok {
		return r.fail(n, fmt.Errorf("%q: want %s", s, want))
	}
	*to = v
	return nil
}

func (r *reader) boolean(n *yaml.Node, to *bool) error {
	return value(r, n, to, "true or false", func(string) (v, ok bool) {
		ok = n.Tag == "!!bool" && n.Decode(&v) == nil
		return v, ok
	})
}

func (r *reader) oneOf(n *yaml.Node, to *string, values ...string) error {
	return value(r, n, to, "one of "+strings.Join(values, ", "), func(s string) (string, bool) { return s, slices.Contains(values, s) })
}

func (r *reader) guid(n *yaml.Node, to *fabric.GUID) error {
	const want = "a GUID like 0x0002c90000000001"
	s, err := r.scalar(n, want)
	if err != nil {
		return err
	}
	// Without 0x YAML and people take digits for a decimal number.
	if !strings.HasPrefix(s, "0x") {
		return r.fail(n, fmt.Errorf("%q: want %s", s, want))
	}
	if *to, err = fabric.ParseGUID(s); err != nil {
		return r.fail(n, err)
	}
	return nil
}

func (r *reader) guids(n *yaml.Node, to *[]fabric.GUID) error {
	if n.Kind != yaml.SequenceNode {
		return r.fail(n, fmt.Errorf("%s: want a list of GUIDs like [0x0002c90000000001]", what(n)))
	}
	seen := make(map[fabric.GUID]bool)
	for _, v := range n.Content {
		var g fabric.GUID
		if err := r.guid(v, &g); err != nil {
			return err
		}
		if seen[g] {
			return r.fail(v, fmt.Errorf("%s is in the list already", g))
		}
		seen[g] = true
		*to = append(*to, g)
	}
	return nil
}

func (r *reader) dims(n *yaml.Node, to *[]int) error {
	return value(r, n, to, "sizes like 16x16", func(s string) ([]int, bool) {
		dims, err := mesh.ParseDims(s)
		return dims, err == nil && slices.Min(dims) >= 1 && slices.Max(dims) <= int(fabric.MaxUnicastLID)
	})
}

func (r *reader) vls(n *yaml.Node, to *int) error {
	return value(r, n, to, "1, 2, 4, 8 or 15 data VLs", func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && lft.CheckVLCount(v) == nil
	})
}

func (r *reader) duration(n *yaml.Node, to *time.Duration) error {
	return value(r, n, to, "a time above zero like 30s or 5m", func(s string) (time.Duration, bool) {
		d, err := time.ParseDuration(s)
		return d, err == nil && d > 0
	})
}

func (r *reader) factor(n *yaml.Node, to *float64) error {
	return value(r, n, to, "a number from 1 to 1000", func(s string) (float64, bool) {
		x, err := strconv.ParseFloat(s, 64)
		return x, err == nil && x >= 1 && x <= 1000
	})
}

func (r *reader) path(n *yaml.Node, to *string) error {
	return value(r, n, to, "an absolute path", func(s string) (string, bool) { return s, filepath.IsAbs(s) })
}

func (r *reader) level(n *yaml.Node, to *zapcore.Level) error {
	var s string
	if err := r.oneOf(n, &s, "debug", "info", "warn", "error"); err != nil {
		return err
	}
	return to.Set(s)
}

// compileOptions is the options of the compiler on the fabric as it is now, and the
// roots that it does not have, which are no reason to stop.
func (c *Config) compileOptions(f *fabric.Fabric) (opt compile.Options, absent []fabric.GUID, err error) {
	opt = compile.Options{
		LIDs:  lft.LIDOptions{Policy: lft.KeepLIDs, LMC: lft.KeepLMC},
		Route: lft.Options{VLs: c.VLs, Dims: c.Dims, NoWrap: c.NoWrap, Repair: c.Repair, Rebalance: c.Rebalance},
		SL2VL: c.SL2VL,
	}
	for _, g := range c.Roots {
		s, ok := f.SwitchByGUID(g)
		if !ok {
			absent = append(absent, g)
			continue
		}
		opt.Route.Roots = append(opt.Route.Roots, s)
	}
	if c.Origin != 0 {
		if _, ok := f.SwitchByGUID(c.Origin); !ok {
			return opt, nil, fmt.Errorf("%s: the switch of origin, %s, is not in the subnet", c.where(), c.Origin)
		}
		opt.Route.Origin = c.Origin
	}
	return opt, absent, nil
}
