package plugin

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/yamlfile"
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

	Roots []fabric.GUID
	// Balanced is roots: balanced, lft.Options.Balanced.
	Balanced bool
	Origin   fabric.GUID
	Dims     []int
	NoWrap   bool
	Repair   bool
	VLs      int
	SL2VL    string
	Verify   string
	VLArb    string
	Timeout  time.Duration
	// Labels is a topology text with the labels of ports, for the logs; "" for none.
	Labels string
	// Shadow has OpenSM route with its next engine, and writes the tables that would be installed to a folder.
	Shadow bool
	// Incremental keeps of the last tables what a change of the subnet leaves. Then
	// tables depend on what the subnet was like before.
	Incremental bool
	// Rebalance is lft.Options.Rebalance.
	Rebalance float64
	// Traffic is a file of what jobs send, "" for none; UniformFloor is compile.Options.UniformFloor.
	Traffic      string
	UniformFloor float64
	Flap         FlapConfig
	Multicast    MulticastConfig
	Log          LogConfig
	// Metrics is a file to write Prometheus metrics to, "" for none.
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

// defaults returns the configuration that holds without a file.
func defaults() *Config {
	return &Config{
		Verify: VerifyError, VLArb: ArbitrationOpenSM, Timeout: 10 * time.Minute, Incremental: true, Rebalance: lft.DefaultRebalance, UniformFloor: lft.DefaultUniformFloor,
		Flap:      FlapConfig{Window: 10 * time.Minute, Hold: 10 * time.Minute},
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

// reader reads one file.
type reader struct{ *yamlfile.File }

// keys has what the value of each key of a mapping does.
type keys = map[string]func(*yaml.Node) error

// ParseConfig reads a configuration file. Errors are *fabric.ParseError: text that is not
// YAML, unknown or duplicate keys, values that their key cannot have.
func ParseConfig(name string, data []byte) (*Config, error) {
	c := defaults()
	c.File = name
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err == nil && doc.IsZero() { // nothing but comments
		return c, nil
	}
	f, root, err := yamlfile.Parse(name, data, yamlfile.Limit, "a configuration", "keys such as roots")
	if err != nil {
		return nil, err
	}
	r := &reader{f}
	err = r.mapping(root, keys{
		"roots": func(n *yaml.Node) error {
			if c.Balanced = n.Value == "balanced"; c.Balanced {
				return nil
			}
			return r.guids(n, &c.Roots)
		},
		"origin":        func(n *yaml.Node) error { return r.guid(n, &c.Origin) },
		"dims":          func(n *yaml.Node) error { return r.dims(n, &c.Dims) },
		"no-wrap":       func(n *yaml.Node) error { return r.boolean(n, &c.NoWrap) },
		"repair":        func(n *yaml.Node) error { return r.boolean(n, &c.Repair) },
		"vls":           func(n *yaml.Node) error { return r.vls(n, &c.VLs) },
		"sl2vl":         func(n *yaml.Node) error { return r.oneOf(n, &c.SL2VL, compile.SL2VLSchemes...) },
		"verify":        func(n *yaml.Node) error { return r.oneOf(n, &c.Verify, VerifyError, VerifyWarn) },
		"vlarb":         func(n *yaml.Node) error { return r.oneOf(n, &c.VLArb, ArbitrationOpenSM, ArbitrationEqual) },
		"timeout":       func(n *yaml.Node) error { return r.duration(n, &c.Timeout) },
		"labels":        func(n *yaml.Node) error { return r.path(n, &c.Labels) },
		"incremental":   func(n *yaml.Node) error { return r.boolean(n, &c.Incremental) },
		"rebalance":     func(n *yaml.Node) error { return r.factor(n, &c.Rebalance) },
		"traffic":       func(n *yaml.Node) error { return r.path(n, &c.Traffic) },
		"uniform-floor": func(n *yaml.Node) error { return r.factor(n, &c.UniformFloor) },
		"flap": func(n *yaml.Node) error {
			return r.mapping(n, keys{
				"count":  func(n *yaml.Node) error { return r.count(n, &c.Flap.Count) },
				"window": func(n *yaml.Node) error { return r.duration(n, &c.Flap.Window) },
				"hold":   func(n *yaml.Node) error { return r.duration(n, &c.Flap.Hold) },
			})
		},
		"shadow": func(n *yaml.Node) error { return r.boolean(n, &c.Shadow) },
		"multicast": func(n *yaml.Node) error {
			return r.mapping(n, keys{
				"scheme":  func(n *yaml.Node) error { return r.oneOf(n, &c.Multicast.Scheme, multicastSchemes()...) },
				"groups":  func(n *yaml.Node) error { return r.path(n, &c.Multicast.Groups) },
				"balance": func(n *yaml.Node) error { return r.boolean(n, &c.Multicast.Balance) },
			})
		},
		"log": func(n *yaml.Node) error {
			return r.mapping(n, keys{
				"file":   func(n *yaml.Node) error { return r.path(n, &c.Log.File) },
				"level":  func(n *yaml.Node) error { return r.level(n, &c.Log.Level) },
				"format": func(n *yaml.Node) error { return r.oneOf(n, &c.Log.Format, "console", "json") },
			})
		},
		"metrics": func(n *yaml.Node) error {
			return r.mapping(n, keys{"file": func(n *yaml.Node) error { return r.path(n, &c.Metrics) }})
		},
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// mapping reads a mapping with these keys. An empty value has none.
func (r *reader) mapping(n *yaml.Node, keys keys) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	return r.Mapping(n, keys)
}

// value reads a scalar and sets *to, if parse accepts its text; want says what it accepts.
func value[T any](r *reader, n *yaml.Node, to *T, want string, parse func(string) (T, bool)) error {
	s, err := r.Text(n, want)
	if err != nil {
		return err
	}
	v, ok := parse(s)
	if !ok {
		return r.Fail(n, "%q; want %s", s, want)
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
	return value(r, n, to, "a GUID like 0x0002c90000000001", func(s string) (fabric.GUID, bool) {
		g, err := fabric.ParseGUID(s)
		// Without 0x YAML and people take digits for a decimal number.
		return g, err == nil && strings.HasPrefix(s, "0x")
	})
}

func (r *reader) guids(n *yaml.Node, to *[]fabric.GUID) error {
	return r.List(n, "GUIDs like [0x0002c90000000001]", func(v *yaml.Node) error {
		var g fabric.GUID
		if err := r.guid(v, &g); err != nil {
			return err
		}
		if slices.Contains(*to, g) {
			return r.Fail(v, "%s is in the list already", g)
		}
		*to = append(*to, g)
		return nil
	})
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

func (r *reader) count(n *yaml.Node, to *int) error {
	return value(r, n, to, "0 for never, or 1 to 1000 times", func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && v >= 0 && v <= 1000
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
		Route: lft.Options{Balanced: c.Balanced, VLs: c.VLs, Dims: c.Dims, NoWrap: c.NoWrap, Repair: c.Repair, Rebalance: c.Rebalance},
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
