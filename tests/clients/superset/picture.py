"""A dashboard in headless Chromium: logs in at the form, waits until all charts are drawn, and takes a picture.

Run by Superset's own environment, which has selenium. Reads what is asked from its input as JSON, and writes what the
page shows as JSON: the text of the page, and how many charts were drawn.
"""

import json
import sys
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

# As root there is no sandbox; the others keep Chromium from looking for hosts of its maker.
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--window-size=1400,1500", "--lang=en-US")  # fmt: skip
DRAWN = "[data-test='slice-container'], .slice_container"


def start(chromium, driver, folder):
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={folder}/chromium"):
        options.add_argument(flag)
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def log_in(browser, address, user, password):
    browser.get(f"{address}/login/")
    find = WebDriverWait(browser, 60).until
    find(lambda page: page.find_element(By.CSS_SELECTOR, "input[name='username'], #username")).send_keys(user)
    browser.find_element(By.CSS_SELECTOR, "input[name='password'], #password").send_keys(password)
    browser.find_element(By.CSS_SELECTOR, "button[type='submit'], input[type='submit']").click()
    find(lambda page: "/login" not in page.current_url)


def wait_for_charts(browser, charts):
    """Until as many are there and none is loading any more."""
    drawn = loading = []
    end = time.monotonic() + 90
    while time.monotonic() < end:
        drawn = browser.find_elements(By.CSS_SELECTOR, DRAWN)
        loading = browser.find_elements(By.CSS_SELECTOR, ".loading, [data-test='loading-indicator']")
        if len(drawn) >= charts and not loading:
            break
        time.sleep(0.5)
    time.sleep(2)  # charts fade in
    return len(browser.find_elements(By.CSS_SELECTOR, DRAWN)) if not loading else 0


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
