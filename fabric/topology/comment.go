package topology

import (
	"cmp"
	"math"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// comment holds the statements of a comment before or after a description.
type comment struct {
	lid      fabric.LID // the last one
	bad      string     // a LID that no port can have, or 0
	badAt    int        // column of bad
	lmc      uint8
	enhanced bool
	strict   bool // no other text is allowed
	junk     int  // where other text is, if strict
	link     fabric.Link
	masks    linkMasks
}

// readComment reads "lid 7 lmc 0 4xNDR" and the like. It skips words that
// it does not know, such as "slot 3" and "(scp)" of ibnetdiscover -g.
func (p *parser) readComment(l *Line, c *comment) error {
	for l.SkipBlanks(); !l.Done(); l.SkipBlanks() {
		from := l.At
		known, err := p.readWord(l, c)
		if err != nil {
			return err
		}
		if c.strict && !known {
			c.junk = from
			return nil
		}
	}
	return nil
}

// readWord reads one statement of a comment. known is false if it does not know the word.
func (p *parser) readWord(l *Line, c *comment) (known bool, err error) {
	from := l.At
	word := l.token()
	switch {
	case string(word) == "lid":
		return true, p.readLID(l, c)
	case string(word) == "lmc":
		return true, p.readLMC(l, c)
	case string(word) == "enhanced":
		c.enhanced = true
		return true, nil
	case strings.IndexByte("0123456789?", word[0]) >= 0:
		link, ok := linkOf(word)
		if ok {
			c.link = link
		}
		return ok, nil
	case len(word) > 2 && word[1] == '=' && strings.IndexByte("wse", word[0]) >= 0:
		return true, p.readMask(word, from, c)
	}
	return false, nil
}

// readLID reads the number behind lid. A LID that no port can have is kept in bad,
// such as those of ports that no subnet manager has brought up: 65535, -1, or none.
func (p *parser) readLID(l *Line, c *comment) error {
	v, start, word := commentNumber(l)
	next := start.nextToken()
	_, isLink := linkOf(next)
	switch {
	case word && (c.lid > 0 || len(next) > 0 && string(next) != "lmc" && !isLink):
		return nil // lid is a word of a description
	case !word && v <= uint64(fabric.MaxUnicastLID):
		l.At = start.At + len(next)
		c.lid = fabric.LID(v)
		if v == 0 && c.bad == "" {
			c.bad, c.badAt = "0", start.At
		}
		return nil
	}
	what := "without a number"
	if !word {
		what = string(next)
		l.At = start.At + len(what)
	}
	if p.strict {
		return p.refusal(p.line, start.At, "LID %s: want 0 to %d", what, fabric.MaxUnicastLID)
	}
	c.bad, c.badAt = what[:min(len(what), 32)], start.At
	return nil
}

func (p *parser) readLMC(l *Line, c *comment) error {
	v, start, word := commentNumber(l)
	switch {
	case word:
		return nil
	case v <= fabric.MaxLMC:
		c.lmc = uint8(v)
		l.At = start.At + len(start.nextToken())
		return nil
	}
	return p.mend(p.line, start.At, "LMC dropped", "LMC %q: want 0 to %d", start.nextToken(), fabric.MaxLMC)
}

// commentNumber returns the next number in a comment, math.MaxUint64
// if it is invalid. word is true if no number comes next, as in 4xNDR.
func commentNumber(l *Line) (v uint64, start Line, word bool) {
	start = *l
	start.SkipBlanks()
	ahead := start
	v, ok := ahead.number()
	switch {
	case ahead.At == start.At && !ahead.Is('-') || ahead.Is('x'):
		return 0, start, true
	case !ok || !ahead.IsBlank():
		return math.MaxUint64, start, false
	}
	return v, start, false
}

// masks are what limits a port in ibsim, one bit per value: IBA's
// LinkWidthEnabled, LinkSpeedEnabled and LinkSpeedExtEnabled.
var masks = [...]linkMask{{"width", 'w', 31}, {"speed", 's', 7}, {"extspeed", 'e', 15}}

type linkMask struct {
	word   string // in a line before a header, for the ports of the nodes that follow
	option byte   // in a line of a port
	most   uint64
}

// linkMasks has a value for each of masks; 0 is not stated.
type linkMasks [len(masks)]int

// ibsim's defaults, DEFAULT_LINKWIDTH and DEFAULT_LINKSPEED in sim.h.
const (
	defaultWidth = 2 // 4x
	defaultSpeed = 1 // SDR
)

// readMask reads w=2, s=1 or e=1, as ibsim's parse_port_opt.
func (p *parser) readMask(word []byte, at int, c *comment) error {
	l := Line{Text: word, At: 2}
	v, ok := l.number()
	for i, m := range masks {
		switch {
		case m.option != word[0]:
		case ok && l.Done() && v <= m.most:
			c.masks[i] = int(v)
		case c.strict: // otherwise a word of a comment
			return p.dropLine(at, "%q: want a number from 0 to %d", word, m.most)
		}
	}
	return nil
}

// link returns the best link of the masks, in ibsim's order
// of preference (get_active_linkwidth and its like).
func (m linkMasks) link() fabric.Link {
	if m == (linkMasks{}) {
		return fabric.Link{}
	}
	l := fabric.Link{Width: 1}
	for _, w := range []struct {
		mask  int
		width uint8
	}{{16, 2}, {2, 4}, {4, 8}, {8, 12}} {
		if cmp.Or(m[0], defaultWidth)&w.mask != 0 {
			l.Width = w.width
		}
	}
	speeds := cmp.Or(m[1], defaultSpeed)&7 | m[2]<<3
	for i, speed := range []fabric.Speed{fabric.SDR, fabric.DDR, fabric.QDR, fabric.FDR, fabric.EDR, fabric.HDR, fabric.NDR} {
		if speeds>>i&1 != 0 || i == 0 {
			l.Speed = speed
		}
	}
	return l
}
