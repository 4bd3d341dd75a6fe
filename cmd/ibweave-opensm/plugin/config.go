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

// VerifyError and VerifyWarn are the values of verify.
const (
	VerifyError = "error" // tables with errors are not installed
	VerifyWarn  = "warn"  // they are installed, and reported
)

// ArbitrationOpenSM and ArbitrationEqual are the values of vlarb.
const (
	ArbitrationOpenSM = "opensm" // OpenSM's options decide
	ArbitrationEqual  = "equal"  // all VLs have equal weights
)

// SchemeAuto and SchemeOpenSM are values of multicast.scheme, as are names of schemes.
const (
	SchemeAuto   = "auto"   // the plugin takes what suits the engine
	SchemeOpenSM = "opensm" // OpenSM makes the trees itself
)

// Config is the configuration file. Its keys are named like
// flags of ibweave compile, if there is such a flag.
type Config struct {
	File string // its name, "" for none

	Roots []fabric.GUID
	// Balanced means roots: balanced; see lft.Options.Balanced.
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
	// Shadow makes OpenSM route with its next engine; our tables go to a folder.
	Shadow bool
	// Incremental keeps the last tables, except what a change of the subnet
	// requires. So tables depend on earlier states of the subnet.
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
	// Balance divides trees over links. Then a group's tree depends on who
	// joined before: another OpenSM, or this one after a restart, makes another tree.
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

// where names the configuration file in messages.
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

// unquote removes quotes that OpenSM leaves around a value.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// reader reads one file.
type reader struct{ *yamlfile.File }

// setter sets a value from its node.
type setter = func(*yaml.Node) error

// keys has the setter for each key of a mapping.
type keys = map[string]setter

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
	err = r.mapping(keys{
		"roots": func(n *yaml.Node) error {
			if c.Balanced = n.Value == "balanced"; c.Balanced {
				return nil
			}
			return r.guids(n, &c.Roots)
		},
		"origin":        r.guid(&c.Origin),
		"dims":          r.dims(&c.Dims),
		"no-wrap":       r.boolean(&c.NoWrap),
		"repair":        r.boolean(&c.Repair),
		"vls":           r.vls(&c.VLs),
		"sl2vl":         r.oneOf(&c.SL2VL, compile.SL2VLSchemes...),
		"verify":        r.oneOf(&c.Verify, VerifyError, VerifyWarn),
		"vlarb":         r.oneOf(&c.VLArb, ArbitrationOpenSM, ArbitrationEqual),
		"timeout":       r.duration(&c.Timeout),
		"labels":        r.path(&c.Labels),
		"incremental":   r.boolean(&c.Incremental),
		"rebalance":     r.factor(&c.Rebalance),
		"traffic":       r.path(&c.Traffic),
		"uniform-floor": r.factor(&c.UniformFloor),
		"flap": r.mapping(keys{
			"count":  r.count(&c.Flap.Count),
			"window": r.duration(&c.Flap.Window),
			"hold":   r.duration(&c.Flap.Hold),
		}),
		"shadow": r.boolean(&c.Shadow),
		"multicast": r.mapping(keys{
			"scheme":  r.oneOf(&c.Multicast.Scheme, multicastSchemes...),
			"groups":  r.path(&c.Multicast.Groups),
			"balance": r.boolean(&c.Multicast.Balance),
		}),
		"log": r.mapping(keys{
			"file":   r.path(&c.Log.File),
			"level":  r.level(&c.Log.Level),
			"format": r.oneOf(&c.Log.Format, "console", "json"),
		}),
		"metrics": r.mapping(keys{"file": r.path(&c.Metrics)}),
	})(root)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// mapping returns a setter for a mapping with these keys. An empty value sets nothing.
func (r *reader) mapping(keys keys) setter {
	return func(n *yaml.Node) error {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			return nil
		}
		return r.Mapping(n, keys)
	}
}

// value returns a setter that parses a scalar into *to; want names what parse accepts.
func value[T any](r *reader, to *T, want string, parse func(string) (T, bool)) setter {
	return func(n *yaml.Node) error {
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
}

func (r *reader) boolean(to *bool) setter {
	return func(n *yaml.Node) error {
		return value(r, to, "true or false", func(string) (v, ok bool) {
			ok = n.Tag == "!!bool" && n.Decode(&v) == nil
			return v, ok
		})(n)
	}
}

func (r *reader) oneOf(to *string, values ...string) setter {
	return value(r, to, "one of "+strings.Join(values, ", "), func(s string) (string, bool) { return s, slices.Contains(values, s) })
}

func (r *reader) guid(to *fabric.GUID) setter {
	return value(r, to, "a GUID like 0x0002c90000000001", func(s string) (fabric.GUID, bool) {
		g, err := fabric.ParseGUID(s)
		// Without 0x, YAML and people take it for a decimal number.
		return g, err == nil && strings.HasPrefix(s, "0x")
	})
}

func (r *reader) guids(n *yaml.Node, to *[]fabric.GUID) error {
	return r.List(n, "GUIDs like [0x0002c90000000001]", func(v *yaml.Node) error {
		var g fabric.GUID
		if err := r.guid(&g)(v); err != nil {
			return err
		}
		if slices.Contains(*to, g) {
			return r.Fail(v, "%s is in the list already", g)
		}
		*to = append(*to, g)
		return nil
	})
}

func (r *reader) dims(to *[]int) setter {
	return value(r, to, "sizes like 16x16", func(s string) ([]int, bool) {
		dims, err := mesh.ParseDims(s)
		return dims, err == nil && slices.Min(dims) >= 1 && slices.Max(dims) <= int(fabric.MaxUnicastLID)
	})
}

func (r *reader) vls(to *int) setter {
	return value(r, to, "1, 2, 4, 8 or 15 data VLs", func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && lft.CheckVLCount(v) == nil
	})
}

func (r *reader) count(to *int) setter {
	return value(r, to, "0 for never, or 1 to 1000 times", func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && v >= 0 && v <= 1000
	})
}

func (r *reader) duration(to *time.Duration) setter {
	return value(r, to, "a time above zero like 30s or 5m", func(s string) (time.Duration, bool) {
		d, err := time.ParseDuration(s)
		return d, err == nil && d > 0
	})
}

func (r *reader) factor(to *float64) setter {
	return value(r, to, "a number from 1 to 1000", func(s string) (float64, bool) {
		x, err := strconv.ParseFloat(s, 64)
		return x, err == nil && x >= 1 && x <= 1000
	})
}

func (r *reader) path(to *string) setter {
	return value(r, to, "an absolute path", func(s string) (string, bool) { return s, filepath.IsAbs(s) })
}

func (r *reader) level(to *zapcore.Level) setter {
	return value(r, to, "one of debug, info, warn, error", func(s string) (l zapcore.Level, ok bool) {
		err := l.Set(s)
		return l, err == nil && slices.Contains([]string{"debug", "info", "warn", "error"}, s)
	})
}

// compileOptions returns the compiler's options for a fabric, and
// the GUIDs of roots that the fabric lacks, which is no error.
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
