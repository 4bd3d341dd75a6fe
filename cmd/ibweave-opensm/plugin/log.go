package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
)

// LogName is the name of our log, in the folder of OpenSM's log.
const LogName = "ibweave.log"

// maxQueue bounds the lines that wait to be written, in bytes.
const maxQueue = 1 << 20

// tellEvery is the least time between lines in OpenSM's log saying that ours cannot be written.
const tellEvery = time.Hour

// openLog opens our log to append to it. It is a file of its
// own, since other programs read OpenSM's. A failure costs
// lines of our log and nothing else; tell, which may be called
// at any time until the log is closed, gets it as a message.
func openLog(c *LogConfig, dir string, tell func(Level, error)) (log *zap.Logger, closeLog func() error) {
	name := c.File
	if name == "" {
		name = filepath.Join(dir, LogName)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.Format == "console" {
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	f := &logFile{name: name, encoder: encoder.Clone(), tell: tell, wake: make(chan struct{}, 1)}
	f.idle.L = &f.mu
	f.busy = true // to open it
	f.wake <- struct{}{}
	go f.run()
	if err := f.Sync(); err != nil {
		f.mu.Lock()
		f.lose(0, err)
		f.mu.Unlock()
	}
	return zap.New(zapcore.NewCore(encoder, f, c.Level)), f.Close
}

// logFile is a log that never blocks its writers: lines go
// into a queue, and a goroutine writes them. Lines that do
// not fit into the queue or cannot be written are counted,
// and a line says so once the log can be written again. A
// log file that was moved away or removed is created again.
type logFile struct {
	name    string
	encoder zapcore.Encoder // encodes the line about lost ones
	wake    chan struct{}   // has an element if run has something to do; closed at the end
	file    *os.File        // for run alone; nil if it is not open
	torn    bool            // for run alone: the file ends in the middle of a line

	mu     sync.Mutex
	idle   sync.Cond
	queue  []byte
	busy   bool // run has lines, or the queue has
	closed bool
	lost   int       // lines
	why    error     // why the last were lost
	told   time.Time // when tell was last called with an error
	ailing bool      // tell has to hear when the log can be written again
	tell   func(Level, error)
}

// Write makes a line printable and puts it into the queue. It returns no error.
func (l *logFile) Write(b []byte) (int, error) {
	line, _ := text.AppendPrintable(nil, b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(b), nil
	}
	if len(l.queue)+len(line) > maxQueue {
		l.lose(1, &hangError{l.name, fileTimeout})
		return len(b), nil
	}
	l.queue = append(l.queue, line...)
	l.busy = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return len(b), nil
}

// lose counts lost lines, and calls tell at most once in tellEvery. The caller holds mu.
func (l *logFile) lose(lines int, why error) {
	l.lost += lines
	l.why = why
	if !l.closed && (l.told.IsZero() || time.Since(l.told) > tellEvery) {
		l.told, l.ailing = time.Now(), true
		l.tell(LogError, fmt.Errorf("log: %w; its lines are counted until it can be written", why))
	}
}

// Sync waits until all lines are written or lost, for fileTimeout at most.
func (l *logFile) Sync() error {
	late := time.AfterFunc(fileTimeout, l.idle.Broadcast)
	defer late.Stop()
	end := time.Now().Add(fileTimeout)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy {
		if !time.Now().Before(end) {
			return &hangError{l.name, fileTimeout}
		}
		l.idle.Wait()
	}
	return nil
}

// Close writes what is left, as Sync does, and ends run.
func (l *logFile) Close() error {
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.wake)
	}
	return err
}

// run writes the lines of the queue until Close.
func (l *logFile) run() {
	var batch []byte
	for range l.wake {
		for {
			l.mu.Lock()
			batch, l.queue = l.queue, batch[:0]
			lost, why := l.lost, l.why
			l.mu.Unlock()
			n, err := l.appendLines(batch, lost, why)
			l.mu.Lock()
			if n >= 0 {
				l.lost -= lost
			}
			if err != nil {
				l.lose(bytes.Count(batch[max(0, n):], []byte("\n")), err)
			} else if l.ailing {
				l.ailing = false
				if !l.closed {
					l.tell(LogInfo, fmt.Errorf("log: %s is written again, %d lines are lost", l.name, lost))
				}
			}
			if len(l.queue) == 0 {
				l.busy = false
				l.idle.Broadcast()
				l.mu.Unlock()
				break
			}
			l.mu.Unlock()
		}
	}
	if l.file != nil {
		_ = l.file.Close() // no log is left for the error
	}
}

// appendLines writes lines to the file, after a line that counts lost ones. n is how
// many bytes of lines the file got; it is negative if the line about lost ones failed.
func (l *logFile) appendLines(lines []byte, lost int, why error) (n int, err error) {
	if err := l.open(); err != nil {
		return -1, err
	}
	var text []byte
	if l.torn {
		text = append(text, '\n')
	}
	if lost > 0 {
		entry := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), Message: "lines are lost here"}
		line, err := l.encoder.EncodeEntry(entry, []zap.Field{zap.Int("lines", lost), zap.Error(why)})
		if err != nil {
			return -1, err
		}
		text = append(text, line.Bytes()...)
		line.Free()
	}
	before := len(text)
	text = append(text, lines...)
	written, err := l.file.Write(text)
	if written > 0 {
		l.torn = text[written-1] != '\n'
	}
	return written - before, err
}

// open opens the file, unless the open one still has that name.
func (l *logFile) open() error {
	info, err := os.Stat(l.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.file != nil {
		if now, err := l.file.Stat(); err == nil && info != nil && os.SameFile(now, info) {
			return nil
		}
		_ = l.file.Close() // it was moved or removed
		l.file, l.torn = nil, false
	}
	if info != nil { // look first: opening a device can have effects
		if err := loggable(l.name, info); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(l.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOCTTY, 0o640)
	if err != nil {
		return err
	}
	if info, err = f.Stat(); err == nil {
		err = loggable(l.name, info) // it may be another file by now
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

// loggable refuses what is neither a regular file nor the null device.
func loggable(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	if null, err := os.Stat(os.DevNull); err == nil && info.Mode().Type() == null.Mode().Type() &&
		info.Sys().(*syscall.Stat_t).Rdev == null.Sys().(*syscall.Stat_t).Rdev {
		return nil
	}
	return &files.RefusedError{File: name, Why: "want a regular file or " + os.DevNull}
}
