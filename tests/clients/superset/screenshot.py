"""A dashboard in headless Chromium: logs in at the form, waits until all charts are drawn, and takes a picture.

Run by Superset's own environment, which has selenium. Reads what is asked from its input as JSON, and writes what the
page shows as JSON: the text of the page, and how many charts were drawn.
"""

import json
import sys
import time

from selenium import webdriver
from selenium.webdriver.common.by import By

# As root there is no sandbox; the others keep Chromium from looking for hosts of its maker.
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--window-size=1400,1340", "--lang=en-US")  # fmt: skip
DRAWN = "[data-test='slice-container'], .slice_container"


def start(chromium, driver, folder):
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={folder}/chromium"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def log_in(browser, address, user, password):
    """The form takes no words before its script runs, so that it may have to be filled again."""
    for _ in range(6):
        browser.get(f"{address}/login/")
        wait(60, lambda: fields(browser))
        time.sleep(1)
        for field, word in zip(fields(browser), (user, password), strict=True):
            field.send_keys(word)
        browser.find_element(By.CSS_SELECTOR, "button[type='submit'], input[type='submit']").click()
        if wait(15, lambda: "/login" not in browser.current_url):
            return
    raise SystemExit(f"nobody was let in: {browser.find_element(By.TAG_NAME, 'body').text}")


def fields(browser):
    found = browser.find_elements(
        By.CSS_SELECTOR, "#username, #password, input[name='username'], input[name='password']"
    )
    return found if len(found) == 2 else []


def wait(seconds, until):
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def wait_for_charts(browser, charts):
    """Until as many are there and none is loading any more; how many are drawn."""

    def drawn():
        loading = browser.find_elements(By.CSS_SELECTOR, ".loading, [data-test='loading-indicator']")
        return len(browser.find_elements(By.CSS_SELECTOR, DRAWN)) if not loading else 0

    wait(180, lambda: drawn() >= charts)
    time.sleep(2)  # charts fade in
    return drawn()


def main():
    asked = json.load(sys.stdin)
    browser = start(asked["chromium"], asked["driver"], asked["folder"])
    try:
        log_in(browser, asked["address"], asked["user"], asked["password"])
        browser.get(asked["address"] + asked["path"])
        drawn = wait_for_charts(browser, asked["charts"])
        browser.save_screenshot(asked["png"])
        text = browser.find_element(By.TAG_NAME, "body").text
        json.dump({"drawn": drawn, "text": text, "url": browser.current_url}, sys.stdout)
    finally:
        browser.quit()


main()
