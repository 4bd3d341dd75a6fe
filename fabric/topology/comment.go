package topology

import (
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// comment is what stands in a comment before or behind a description.
type comment struct {
	lid      fabric.LID // the last one
	firstLID fabric.LID // the first one
	lids     int        // how many
	lmc      uint8
	enhanced bool
	unquoted bool // a description is among it
	strict   bool // it is no comment, and nothing else may be among it
	junk     int  // where something else is, if strict
	link     fabric.Link
	masks    linkMasks
}

// readComment reads "lid 7 lmc 0 4xNDR" and the like. Words that it does not know
// are passed over, as "slot 3" and "(scp)" of ibnetdiscover -g.
func (p *parser) readComment(l *line, c *comment) error {
	for l.skipBlanks(); !l.done(); l.skipBlanks() {
		from := l.at
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

// readWord reads one statement of a comment. It says whether it knows the word.
func (p *parser) readWord(l *line, c *comment) (known bool, err error) {
	from := l.at
	word := l.token()
	switch {
	case string(word) == "lid":
		v, ok, err := p.readCommentNumber(l, c, "LID", uint64(fabric.MaxUnicastLID))
		if ok {
			if c.lid = fabric.LID(v); c.lids == 0 {
				c.firstLID = c.lid
			}
			c.lids++
		}
		return true, err
	case string(word) == "lmc":
		v, ok, err := p.readCommentNumber(l, c, "LMC", fabric.MaxLMC)
		if ok {
			c.lmc = uint8(v)
		}
		return true, err
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

// readCommentNumber reads the number behind lid or lmc. It is not ok if the word is one
// of a description, or the number is dropped.
func (p *parser) readCommentNumber(l *line, c *comment, what string, most uint64) (v uint64, ok bool, err error) {
	ahead := *l
	ahead.skipBlanks()
	start := ahead
	v, ok = ahead.number()
	switch {
	case ahead.at == start.at && !ahead.is('-') || ahead.is('x'): // a word, or lid 4xNDR
		return 0, false, nil
	case ok && v <= most && ahead.isBlank():
		l.at = ahead.at
		return v, true, nil
	case c.unquoted:
		return 0, false, nil
	}
	return 0, false, p.mend(p.line, start.at, what+" dropped", "%s %q: want 0 to %d", what, start.nextToken(), most)
}

// linkMasks is what ibsim lets a port run at, one bit each: IBA's
// LinkWidthEnabled, LinkSpeedEnabled and LinkSpeedExtEnabled. 0 is not stated.
type linkMasks struct{ width, speed, ext int }

// ibsim's defaults, DEFAULT_LINKWIDTH and DEFAULT_LINKSPEED in sim.h.
const (
	defaultWidth = 2 // 4x
	defaultSpeed = 1 // SDR
)

// readMask reads w=2, s=1 or e=1, as ibsim's parse_port_opt.
func (p *parser) readMask(word []byte, at int, c *comment) error {
	most, to := uint64(31), &c.masks.width
	switch word[0] {
	case 's':
		most, to = 7, &c.masks.speed
	case 'e':
		most, to = 15, &c.masks.ext
	}
	l := line{text: word, at: 2}
	v, ok := l.number()
	if !ok || !l.done() || v > most {
		if !c.strict {
			return nil // a word of a comment
		}
		return p.failHere(at, "line dropped", "%q: want a number from 0 to %d", word, most)
	}
	*to = int(v)
	return nil
}

// link is the best link of the masks, in ibsim's order of preference
// (get_active_linkwidth and its like).
func (m linkMasks) link() fabric.Link {
	if m == (linkMasks{}) {
		return fabric.Link{}
	}
	if m.width == 0 {
		m.width = defaultWidth
	}
	if m.speed == 0 {
		m.speed = defaultSpeed
	}
	l := fabric.Link{Width: 1, Speed: fabric.SDR}
	for _, w := range []struct{ mask, width int }{{8, 12}, {4, 8}, {2, 4}, {16, 2}} {
		if m.width&w.mask != 0 {
			l.Width = uint8(w.width)
			break
		}
	}
	switch {
	case m.ext&8 != 0:
		l.Speed = fabric.NDR
	case m.ext&4 != 0:
		l.Speed = fabric.HDR
	case m.ext&2 != 0:
		l.Speed = fabric.EDR
	case m.ext&1 != 0:
		l.Speed = fabric.FDR
	case m.speed&4 != 0:
		l.Speed = fabric.QDR
	case m.speed&2 != 0:
		l.Speed = fabric.DDR
	}
	return l
}
