// A redsync client with default settings that takes the lock in a loop.
// Arguments and output: see poll.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const hold = 10 * time.Millisecond

func main() {
	log.SetFlags(0)
	if len(os.Args) != 6 {
		log.Fatal("usage: redsync PORT NAME SECTION-FILE SECONDS AWAY-MS")
	}
	port, name, section := os.Args[1], os.Args[2], os.Args[3]
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	mutex := redsync.New(goredis.NewPool(client)).NewMutex(name)
	end := time.Now().Add(time.Duration(number(os.Args[4])) * time.Second)
	away := time.Duration(number(os.Args[5])) * time.Millisecond
	for time.Now().Before(end) {
		poll(mutex, section)
		time.Sleep(away)
	}
}

func number(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return number
}

// Calls Lock once and prints when the call began (Unix time) and how long it took, both in
// microseconds, and its outcome. The section file shows whether another client holds the lock too.
func poll(mutex *redsync.Mutex, section string) {
	began := time.Now()
	err := mutex.Lock()
	took := time.Since(began)
	outcome := "got"
	var taken *redsync.ErrTaken
	switch {
	case errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken):
		outcome = "gave-up"
	case err != nil:
		log.Fatal(err)
	default:
		file, err := os.OpenFile(section, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			outcome = "overlap"
		}
		time.Sleep(hold)
		if outcome == "got" {
			file.Close()
			os.Remove(section)
		}
		if ok, err := mutex.Unlock(); !ok {
			log.Fatalf("unlock: %v", err)
		}
	}
	fmt.Println(began.UnixMicro(), took.Microseconds(), outcome)
}
