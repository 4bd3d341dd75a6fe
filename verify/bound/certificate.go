package bound

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Certificate proves a bound by the theorem at the head of the package. Check proves
// it again, and need not trust its author.
//
// Its text is first a line
//
//	ibweave bound 1 paths any unit 16 bound 128/1 sources 1 channels 15 fabric sha256:<64 digits>
//
// then a line for each source, with the GUID of the switch, in ascending order, and a line for
// each channel with a length: the GUID of its switch, the port and the length, in the order of
// GUIDs and ports. "sources all" has no such lines: all switches with hosts are sources. "sources
// gate" has one, the gate. A fraction is in lowest terms. For legal paths the first line has
// "order N" before the fabric, and the GUIDs of all N switches follow at the end, in the order
// that determines the legal ports. A bound under a demand has "demand sha256:<64 digits>" before
// the fabric.
type Certificate struct {
	Paths    Paths
	Unit     int64             // 0 for routes that may be divided
	Bound    *big.Rat          // more than 0
	Sources  []fabric.GUID     // nil for all
	Gate     bool              // there is one source, a gate
	Channels []Length          // by GUID and port
	Order    []fabric.GUID     // for legal paths: all switches, the first on top; else nil
	Demand   [sha256.Size]byte // see DemandDigest; 0 for one route from each host to each LID
	Fabric   [sha256.Size]byte // see Digest
}

// Bound is a bound with its certificate.
type Bound struct {
	// Load is the bound, in routes on the fastest cable; see the head of the package. Exact is the
	// same number.
	Load  float64  `json:"load"`
	Exact *big.Rat `json:"-"`
	// Unit is the size of the lumps in which routes count.
	Unit  int64  `json:"unit"`
	Words string `json:"witness"`
	// Close is true if tables far above the bound deserve a remark: lengths were sought, or the fabric
	// is a tree, in which cuts are nearly as good.
	Close       bool         `json:"-"`
	Tree        bool         `json:"-"` // the fabric is a tree, where one lane is enough for any load
	Certificate *Certificate `json:"-"`
}

// Length is the length of a channel.
type Length struct {
	Switch fabric.GUID // switch that the channel leaves
	Port   fabric.PortNum
	Length int64 // 1 to MaxLength
}

// MaxLength is the greatest length of a channel. It keeps the length of any path below 1<<47.
const MaxLength = 1 << 30

const (
	magic = "ibweave bound 1"
	// HashPrefix comes before the digits of all hashes.
	HashPrefix = "sha256:"
	allSources = "all"
	gateSource = "gate"
)

// Append appends the certificate's text to b.
func (c *Certificate) Append(b []byte) []byte {
	sources := allSources
	if c.Gate {
		sources = gateSource
	} else if c.Sources != nil {
		sources = strconv.Itoa(len(c.Sources))
	}
	b = fmt.Appendf(b, "%s paths %s unit %d bound %s sources %s channels %d", magic, c.Paths, c.Unit, c.Bound, sources, len(c.Channels))
	if c.Paths == LegalPaths {
		b = fmt.Appendf(b, " order %d", len(c.Order))
	}
	if c.Demand != ([sha256.Size]byte{}) {
		b = fmt.Appendf(b, " demand %s%x", HashPrefix, c.Demand)
	}
	b = fmt.Appendf(b, " fabric %s%x\n", HashPrefix, c.Fabric)
	for _, g := range c.Sources {
		b = append(g.Append(b), '\n')
	}
	for _, x := range c.Channels {
		b = fmt.Appendf(b, "%s %d %d\n", x.Switch, x.Port, x.Length)
	}
	for _, g := range c.Order {
		b = append(g.Append(b), '\n')
	}
	return b
}

// Read reads one or more certificates. It accepts only what Append writes; the error is a
// *fabric.ParseError with the line.
func Read(name string, data []byte) ([]*Certificate, error) {
	r := &Lines{Rest: data}
	var list []*Certificate
	for len(list) == 0 || len(r.Rest) > 0 {
		c, err := r.certificate()
		if err != nil {
			return nil, r.Fail(name, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// Lines reads the text of certificates line by line.
type Lines struct {
	Rest []byte
	Text string // the last line read
	line int    // its number
}

// Fail returns an error about the last line read.
func (r *Lines) Fail(name string, err error) error {
	return &fabric.ParseError{File: name, Line: r.line, Text: r.Text, Err: err}
}

// Next reads a line; what names it in the error if the text has ended.
func (r *Lines) Next(what string) error {
	text, rest, ok := bytes.Cut(r.Rest, []byte("\n"))
	r.line++
	r.Text, r.Rest = string(text), rest
	switch {
	case ok:
		return nil
	case len(text) == 0:
		return fmt.Errorf("the file ends: want %s", what)
	}
	return errors.New("the line has no end: the file was cut off")
}

func (r *Lines) certificate() (*Certificate, error) {
	if err := r.Next(fmt.Sprintf("a line that begins with %q", magic)); err != nil {
		return nil, err
	}
	c, n, err := parseHeader(r.Text)
	if err != nil {
		return nil, err
	}
	if c.Sources, err = r.guids(n.sources, "sources"); err != nil {
		return nil, err
	}
	for i := 1; i < len(c.Sources); i++ {
		if c.Sources[i-1] >= c.Sources[i] {
			return nil, errors.New("sources must ascend by GUID, each once")
		}
	}
	for i := range n.channels {
		if err := r.Next(fmt.Sprintf("%d channels, as the head says", n.channels)); err != nil {
			return nil, err
		}
		x, err := parseLength(r.Text)
		if err != nil {
			return nil, err
		}
		if i > 0 && c.Channels[i-1].compare(x) >= 0 {
			return nil, errors.New("channels must ascend by GUID and port, each once")
		}
		c.Channels = append(c.Channels, x)
	}
	c.Order, err = r.guids(n.order, "switches of the order")
	return c, err
}

// guids reads n lines with a GUID each.
func (r *Lines) guids(n int, what string) (list []fabric.GUID, err error) {
	for range n {
		if err := r.Next(fmt.Sprintf("%d %s, as the head says", n, what)); err != nil {
			return nil, err
		}
		g, err := ParseGUID(r.Text)
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

func (x Length) compare(y Length) int {
	return cmp.Or(cmp.Compare(x.Switch, y.Switch), cmp.Compare(x.Port, y.Port))
}

// lines counts the lines of each kind that follow the first.
type lines struct{ sources, channels, order int }

// parseHeader reads the first line. 0 sources stand for all.
func parseHeader(s string) (c *Certificate, count lines, err error) {
	fail := func(format string, args ...any) (*Certificate, lines, error) {
		return nil, lines{}, fmt.Errorf(format, args...)
	}
	rest, ok := strings.CutPrefix(s, magic+" ")
	if !ok {
		return fail("no bound that can be read: want a line that begins with %q", magic)
	}
	field := strings.Split(rest, " ")
	keys := []string{"paths", "unit", "bound", "sources", "channels", "fabric"}
	if len(field) > 1 && field[1] == LegalPaths.String() {
		keys = slices.Insert(keys, 5, "order")
	}
	demanded := len(field) > 3 && field[len(field)-4] == "demand"
	if demanded {
		keys = slices.Insert(keys, len(keys)-1, "demand")
	}
	for i, key := range keys {
		if len(field) != 2*len(keys) || field[2*i] != key {
			return fail("want %q", magic+" paths P unit U bound N/D sources S channels C fabric "+HashPrefix+"H, with order N before fabric where P is legal, and demand "+HashPrefix+"H for a demand")
		}
	}
	c = &Certificate{}
	paths := slices.Index(pathNames[:], field[1])
	if paths < 0 {
		return fail("paths %q: want %s", field[1], strings.Join(pathNames[:], ", "))
	}
	c.Paths = Paths(paths)
	if c.Unit, err = ParseDecimal(field[3], 0, math.MaxInt32); err != nil {
		return fail("unit %w", err)
	}
	if c.Bound, ok = parseFraction(field[5]); !ok {
		return fail("bound %q: want a fraction above 0 in lowest terms, such as 128/1", field[5])
	}
	var n int64
	switch field[7] {
	case allSources:
	case gateSource:
		c.Gate, n = true, 1
	default:
		if n, err = ParseDecimal(field[7], 1, math.MaxInt32); err != nil {
			return fail("sources %w, or %s or %s", err, allSources, gateSource)
		}
	}
	count.sources = int(n)
	if n, err = ParseDecimal(field[9], 1, math.MaxInt32); err != nil {
		return fail("channels %w", err)
	}
	count.channels = int(n)
	if c.Paths == LegalPaths {
		if n, err = ParseDecimal(field[11], 1, math.MaxInt32); err != nil {
			return fail("order %w", err)
		}
		count.order = int(n)
	}
	if c.Fabric, err = ParseHash("fabric", field[len(field)-1]); err != nil {
		return fail("%w", err)
	}
	if demanded {
		c.Demand, err = ParseHash("demand", field[len(field)-3])
		if err == nil && c.Demand == ([sha256.Size]byte{}) {
			err = errors.New("demand of no digest: want one that is not 0")
		}
	}
	return c, count, err
}

// ParseHash reads HashPrefix and 64 digits. key, the field of the certificate, is for the error.
func ParseHash(key, s string) (sum [sha256.Size]byte, err error) {
	digits, ok := strings.CutPrefix(s, HashPrefix)
	hash, err := hex.DecodeString(digits)
	if !ok || err != nil || len(hash) != len(sum) || strings.ToLower(digits) != digits {
		return sum, fmt.Errorf("%s %q: want %s and %d hexadecimal digits in lower case", key, s, HashPrefix, 2*len(sum))
	}
	copy(sum[:], hash)
	return sum, nil
}

// maxDigits bounds the digits of a numerator and of a denominator.
const maxDigits = 40

// parseFraction reads a fraction, only as a certificate writes it.
func parseFraction(s string) (*big.Rat, bool) {
	if len(s) > 2*maxDigits+1 {
		return nil, false
	}
	num, den, ok := strings.Cut(s, "/")
	if !ok || strings.Trim(num+den, "0123456789") != "" {
		return nil, false
	}
	x, ok := new(big.Rat).SetString(s)
	return x, ok && x.Sign() > 0 && x.String() == s
}

// parseLength reads the line of a channel.
func parseLength(text string) (x Length, err error) {
	field := strings.Split(text, " ")
	if len(field) != 3 {
		return x, errors.New("want a GUID, a port and a length")
	}
	if x.Switch, err = ParseGUID(field[0]); err != nil {
		return x, err
	}
	port, err := ParseDecimal(field[1], 1, int64(fabric.MaxPortNum))
	if err != nil {
		return x, fmt.Errorf("port %w", err)
	}
	x.Port = fabric.PortNum(port)
	if x.Length, err = ParseDecimal(field[2], 1, MaxLength); err != nil {
		return x, fmt.Errorf("length %w", err)
	}
	return x, nil
}

// ParseGUID reads a GUID, only as a certificate writes it.
func ParseGUID(s string) (fabric.GUID, error) {
	g, err := fabric.ParseGUID(s)
	if err == nil && (g == 0 || g.String() != s) {
		err = fmt.Errorf("GUID %q: want 0x and 16 hexadecimal digits in lower case, not all 0", s)
	}
	return g, err
}

// ParseDecimal reads a number from low to high, only as a certificate writes it.
func ParseDecimal(s string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%q: want %d to %d", s, low, high)
	}
	return n, nil
}
