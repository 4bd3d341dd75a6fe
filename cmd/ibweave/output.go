package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
)

// remember keeps the first error of a writer and drops what comes after it. Its caller
// asks for err at the end: cobra prints or drops such errors.
type remember struct {
	w   io.Writer
	err error
}

func (r *remember) Write(p []byte) (int, error) {
	if r.err == nil {
		_, r.err = r.w.Write(p)
	}
	return len(p), nil
}

// printable passes text of people and JSON on to a terminal: names, lines of input and
// names of files are in it, and none of them may act on the terminal.
type printable struct {
	w    io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character
	out  []byte
}

func (p *printable) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := b
	if len(p.rest) > 0 {
		text = append(p.rest, b...)
	}
	var rest []byte
	p.out, rest = fabric.AppendPrintable(p.out[:0], text)
	p.rest = append([]byte(nil), rest...)
	_, err := p.w.Write(p.out)
	return len(b), err
}

// end writes the rest of text that ends within a character.
func (p *printable) end() {
	if len(p.rest) > 0 {
		_, _ = io.WriteString(p.w, fabric.Printable(string(p.rest)))
		p.rest = nil
	}
}

// printed is write for a file of text or JSON, which is printable there as on standard output.
func printed(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		p := &printable{w: w}
		defer p.end()
		return write(p)
	}
}

// watchMemory ends the process when it takes more memory than there is for it, before
// the system does that without a word: of all memory that it has or may still have,
// an eighth stays. What was being written is left to the next command, as after a crash.
func watchMemory(stderr io.Writer) {
	const worthLooking = 256 << 20
	for range time.Tick(20 * time.Millisecond) {
		has := files.Resident()
		if has < worthLooking {
			continue
		}
		if all := has + files.Available(); has > all/8*7 {
			fmt.Fprintf(stderr, "ibweave: the input takes more than %s of memory, seven eighths of what there is; want a smaller input, or a machine with more memory\n", files.Size(all/8*7))
			os.Exit(exitInput)
		}
	}
}
