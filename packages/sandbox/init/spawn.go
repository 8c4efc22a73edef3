package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	defaultPath       = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	defaultKeepOutput = 1 << 20
)

type spawnRequest struct {
	Argv            []string          `json:"argv"`
	Env             map[string]string `json:"env"` // complete, but for PATH, HOME and TERM
	Cwd             string            `json:"cwd"`
	User            string            `json:"user"`
	Pty             *terminalSize     `json:"pty"`
	Stdin           bool              `json:"stdin"`
	DeadlineMs      int64             `json:"deadline_ms"`
	KillGraceMs     *int64            `json:"kill_grace_ms"`
	KeepOutputBytes int               `json:"keep_output_bytes"`
	OutputPath      string            `json:"output_path"` // a file to which all output is appended, also that of processes that outlive this one
	inheritOutput   bool
	oneOutput       bool
	isMain          bool    // the program of the sandbox, and not a command in it
	descriptors     int     // for which the program has room; 0: the usual number
	thread          *thread // that starts it; nil: the usual one
}

func spawnProcess(s *server, on *stream, r spawnRequest) (any, error) {
	p, err := s.spawn(r)
	if err != nil {
		return nil, err
	}
	return s.follow(p, on, map[string]any{"process": p.id, "pid": p.pid})
}

type mainRequest struct {
	spawnRequest
	Keep          bool `json:"keep"`           // the sandbox goes on after the program's end
	InheritOutput bool `json:"inherit_output"` // the program writes to the init's own output, as to the log of a container
	OneOutput     bool `json:"one_output"`     // its standard error too goes to the standard output, so a log keeps the order of lines
}

// spawnMain starts the program of the image. Its end is the end of the sandbox.
func spawnMain(s *server, on *stream, r mainRequest) (any, error) {
	r.inheritOutput, r.oneOutput, r.isMain = r.InheritOutput, r.OneOutput, true
	p, err := s.spawn(r.spawnRequest)
	if err != nil {
		return nil, err
	}
	if !r.Keep {
		go func() {
			<-p.done
			// A client that reads the output gets all of it before the connection breaks.
			select {
			case <-p.reported:
			case <-time.After(time.Second):
			}
			s.endWith(p)
		}()
	}
	return s.follow(p, on, map[string]any{"process": p.id, "pid": p.pid})
}

// commandLine is the program behind the options of the init.
type commandLine struct {
	argv  []string
	await string
	cwd   string
}

const awaitEvery = 20 * time.Millisecond

// startProgram starts the program of the command line with the environment of the init, at once or when what it awaits exists. Its end is
// the end of the sandbox.
func (s *server) startProgram(program commandLine) error {
	if program.await == "" {
		return s.startNow(program)
	}
	go func() {
		for {
			if _, err := os.Stat(program.await); err == nil {
				break
			}
			time.Sleep(awaitEvery)
		}
		if err := s.startNow(program); err != nil {
			fmt.Fprintf(os.Stderr, "init: %v\n", err)
			s.shutdown(defaultGrace, 127)
		}
	}()
	return nil
}

func (s *server) startNow(program commandLine) error {
	env := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	cwd := program.cwd
	if cwd == "" {
		var err error
		if cwd, err = os.Getwd(); err != nil {
			return err
		}
	}
	p, err := s.spawn(spawnRequest{Argv: program.argv, Env: env, Cwd: cwd, inheritOutput: true, oneOutput: true, isMain: true})
	if err != nil {
		return err
	}
	go func() {
		<-p.done
		s.endWith(p)
	}()
	return nil
}

// endWith ends the sandbox with the exit code of its program.
func (s *server) endWith(p *process) {
	code := 128 + int(p.status.Signal())
	if p.status.Exited() {
		code = p.status.ExitStatus()
	}
	s.shutdown(defaultGrace, code)
}

type attachRequest struct {
	Process int `json:"process"`
}

// attachProcess gives the output that was not taken yet, and takes the place of a client that is attached.
func attachProcess(s *server, on *stream, r attachRequest) (any, error) {
	p, err := s.processes.find(r.Process)
	if err != nil {
		return nil, err
	}
	return s.follow(p, on, map[string]any{"process": p.id, "pid": p.pid, "dropped_bytes": p.output.droppedBytes()})
}

// follow answers a request, and connects its stream with a process until the process ends, which is reported once, or the client is gone.
// The output is claimed before the answer: a client that has the answer may detach and attach again at once, and the later one keeps it.
func (s *server) follow(p *process, on *stream, answer map[string]any) (any, error) {
	s.following.Add(1)
	defer s.following.Add(-1)
	p.output.claim(on)
	if err := on.answer(answer); err != nil {
		p.output.release(on)
		return nil, err
	}
	if p.stdin != nil {
		go func() {
			// An error means that the client is gone: the next one may go on writing.
			if _, err := io.Copy(p.stdin, onlyReader{on}); err == nil {
				p.stdin.Close()
			}
		}()
	}
	if !p.output.sendTo(on) {
		if on.context.Err() != nil {
			return nil, context.Cause(on.context)
		}
		return nil, failed("replaced", "another client attached to process %d", p.id)
	}
	if !s.processes.forget(p) {
		return nil, failed("no_process", "the end of process %d was reported already", p.id)
	}
	on.finish(s.endingOf(p), nil)
	close(p.reported)
	return nil, nil
}

// onlyReader hides Write from io.Copy, which would otherwise look for shortcuts.
type onlyReader struct{ io.Reader }

func (s *server) spawn(r spawnRequest) (*process, error) {
	if s.stopping.Load() {
		return nil, failed("stopping", "the sandbox is shutting down")
	}
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return nil, failed("invalid_request", "argv is empty; it needs at least the program")
	}
	who, err := findAccount(r.User)
	if err != nil {
		return nil, err
	}
	cwd := r.Cwd
	if cwd == "" {
		cwd = "/"
	}
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
		return nil, failed("no_cwd", "the working directory %q does not exist or is not a directory", cwd)
	}
	env := environment(r, who)
	program, err := findProgram(r.Argv[0], cwd, env["PATH"])
	if err != nil {
		return nil, err
	}
	keep := r.KeepOutputBytes
	if keep <= 0 {
		keep = defaultKeepOutput
	}
	p := &process{
		argv: r.Argv, isMain: r.isMain, output: newOutput(keep), ended: make(chan struct{}), done: make(chan struct{}), reported: make(chan struct{}), memory: readMemoryCounts(),
	}
	plumbing, err := openPlumbing(p, r)
	if err != nil {
		return nil, err
	}
	defer plumbing.closeInner()
	attributes := &syscall.SysProcAttr{Setsid: true, Setctty: r.Pty != nil, Credential: who.credential}
	if s.programsEndWithIt {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	files := plumbing.fds()
	if r.descriptors > len(files) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			plumbing.closeOuter()
			return nil, err
		}
		defer null.Close()
		files = withRoom(files, r.descriptors, null)
	}
	create := func() (int, error) {
		return syscall.ForkExec(program, r.Argv, &syscall.ProcAttr{Dir: cwd, Env: flat(env), Files: files, Sys: attributes})
	}
	starter := r.thread
	if starter == nil {
		starter = s.starter
	}
	p.startedAt = time.Now()
	err = s.processes.start(p, func() (int, error) {
		if starter != nil {
			return starter.run(create)
		}
		return create()
	})
	if err != nil {
		plumbing.closeOuter()
		return nil, failed("not_started", "%q could not be started: %v", program, err)
	}
	if r.DeadlineMs > 0 {
		s.processes.setDeadline(p, time.Duration(r.DeadlineMs)*time.Millisecond, graceOf(r.KillGraceMs))
	}
	go plumbing.run(p)
	return p, nil
}

// A plumbing holds both ends of a process's standard streams.
type plumbing struct {
	inner   [3]*os.File
	outputs map[byte]*os.File
	input   io.Closer
}

func openPlumbing(p *process, r spawnRequest) (*plumbing, error) {
	if r.Pty != nil {
		outer, inner, err := openTerminal(*r.Pty)
		if err != nil {
			return nil, err
		}
		p.terminal, p.stdin = outer, terminalInput{outer}
		return &plumbing{inner: [3]*os.File{inner, inner, inner}, outputs: map[byte]*os.File{channelStdout: outer.File}}, nil
	}
	l := &plumbing{outputs: map[byte]*os.File{}}
	var pipes [6]*os.File
	for i := 0; i < 6; i += 2 {
		var err error
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			for _, open := range pipes[:i] {
				open.Close()
			}
			return nil, err
		}
	}
	l.inner = [3]*os.File{pipes[0], pipes[3], pipes[5]}
	l.outputs[channelStdout], l.outputs[channelStderr] = pipes[2], pipes[4]
	if r.inheritOutput || r.OutputPath != "" {
		if err := l.replaceOutput(r.OutputPath, r.oneOutput); err != nil {
			return nil, failed("no_output", "the output cannot be written: %v", err)
		}
	} else if r.oneOutput {
		l.inner[2].Close()
		l.inner[2] = l.inner[1]
	}
	if r.Stdin {
		p.stdin, l.input = pipes[1], pipes[1]
	} else {
		pipes[1].Close() // an input that is at its end: works also in an image without /dev/null
	}
	return l, nil
}

// replaceOutput gives the process a file for its output; without a path, duplicates of the init's own output. The pipes have no writer,
// so they are at their end.
func (l *plumbing) replaceOutput(path string, isOne bool) error {
	for at := 1; at <= 2; at++ {
		l.inner[at].Close()
		own := at
		if isOne {
			own = 1
		}
		file, err := openOutput(path, own)
		if err != nil {
			l.closeOuter()
			return err
		}
		l.inner[at] = file
	}
	return nil
}

func openOutput(path string, own int) (*os.File, error) {
	if path != "" {
		return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	fd, err := syscall.Dup(own)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "output"), nil
}

// fds makes the inner ends blocking, as programs expect.
func (l *plumbing) fds() []uintptr {
	return []uintptr{l.inner[0].Fd(), l.inner[1].Fd(), l.inner[2].Fd()}
}

func (l *plumbing) closeInner() {
	for _, file := range l.inner {
		file.Close()
	}
}

func (l *plumbing) closeOuter() {
	for _, file := range l.outputs {
		file.Close()
	}
	if l.input != nil {
		l.input.Close()
	}
}

// run collects the output until the process has ended.
func (l *plumbing) run(p *process) {
	var copying sync.WaitGroup
	for channel, file := range l.outputs {
		copying.Go(func() { p.collect(channel, file) })
	}
	<-p.ended
	if l.input != nil {
		l.input.Close()
	}
	copying.Wait()
	close(p.done)
	p.output.close()
}

func environment(r spawnRequest, who account) map[string]string {
	env := map[string]string{"PATH": defaultPath, "HOME": who.home}
	if r.Pty != nil {
		env["TERM"] = "xterm-256color"
	}
	for name, value := range r.Env {
		env[name] = value
	}
	return env
}

func flat(env map[string]string) []string {
	all := make([]string, 0, len(env))
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// findProgram looks the program up in the PATH of the process, not of the init.
func findProgram(name, cwd, path string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		if _, err := os.Stat(name); err != nil {
			return "", failed("no_program", "there is no program %q", name)
		}
		return name, nil
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(cwd, folder)
		}
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", failed("no_program", "there is no program %q in PATH=%s", name, path)
}

type signalRequest struct {
	Process int    `json:"process"`
	Signal  string `json:"signal"`
	Group   bool   `json:"group"`
}

func signalProcess(s *server, _ *stream, r signalRequest) (any, error) {
	p, err := s.processes.find(r.Process)
	if err != nil {
		return nil, err
	}
	signal, err := parseSignal(r.Signal)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.processes.signal(p, signal, r.Group)
}

type resizeRequest struct {
	Process int `json:"process"`
	terminalSize
}

func resizeProcess(s *server, _ *stream, r resizeRequest) (any, error) {
	p, err := s.processes.find(r.Process)
	if err != nil {
		return nil, err
	}
	if p.terminal == nil {
		return nil, failed("no_terminal", "process %d was started without a terminal", p.id)
	}
	return struct{}{}, p.terminal.resize(r.terminalSize)
}

func listProcesses(s *server, _ *stream, _ struct{}) (any, error) {
	type row struct {
		Process   int      `json:"process"`
		Pid       int      `json:"pid"`
		Argv      []string `json:"argv"`
		StartedMs int64    `json:"started_ms"`
		Main      bool     `json:"main"`
		Ending    *ending  `json:"ending"`
	}
	rows := []row{}
	for _, p := range s.processes.list() {
		one := row{Process: p.id, Pid: p.pid, Argv: p.argv, StartedMs: p.startedAt.UnixMilli(), Main: p.isMain}
		select {
		case <-p.done:
			end := s.endingOf(p)
			one.Ending = &end
		default:
		}
		rows = append(rows, one)
	}
	return map[string]any{"processes": rows}, nil
}
